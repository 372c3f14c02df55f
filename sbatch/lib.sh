# shellcheck shell=bash
# What the scripts of this folder share. Sourced by them, from any directory.
clone=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

say() { printf 'siteproof: %s\n' "$*" >&2; }

die() {
    say "$@"
    exit 2
}

# Prints a step's heading and the command, then runs it; returns the command's exit code.
step() {
    printf '\n== %s\n$' "$1" >&2
    shift
    printf ' %q' "$@" >&2
    printf '\n' >&2
    "$@"
}

# A campaign's name as that of a file.
file_name() {
    local name=${1//[!A-Za-z0-9._-]/_}
    printf '%s' "${name/#[.-]/_}"
}

# Writes a campaign's report, and the files for CI, monitoring and other programs.
leave() {
    local folder
    folder=$SITEPROOF_DATA/output/reports/$(file_name "$1")
    mkdir -p -- "$folder" || return
    step "the report" siteproof report --campaign "$1" --output "$folder/report.html"
    step "for CI" siteproof export junit --campaign "$1" --output "$folder/junit.xml"
    step "for monitoring" siteproof export openmetrics --campaign "$1" --output "$folder/siteproof.prom"
    step "for other programs" siteproof export json --campaign "$1" --output "$folder/verdict.json"
    [ -z "${SITEPROOF_PAGES-}" ] || step "the folder of pages" siteproof report --site "$SITEPROOF_PAGES"
}

# Under Slurm the script is a copy in the spool: the clone is where sbatch was called.
[ -f "$clone/activate" ] || clone=${SLURM_SUBMIT_DIR:-$PWD}
[ -f "$clone/activate" ] || die "submit from the clone: no activate in $clone"
cd "$clone" || exit 2
# shellcheck source=activate
. ./activate || exit 2
