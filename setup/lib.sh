# shellcheck shell=sh
# What the setup scripts share. Sourced first, from anywhere in the clone's setup/.

# shellcheck disable=SC2034 # for the scripts that source this
top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)

say() { printf 'siteproof: %s\n' "$*"; }

die() {
    say "$*" >&2
    exit 2
}

have() { command -v "$1" >/dev/null 2>&1; }
