# shellcheck shell=sh
# Which Python makes .venv. Sourced after lib.sh.
#
# A login node's own python3 may be 3.6 (RHEL 8, SLES 15) or 3.9 (RHEL 9): it is asked for its version,
# and nothing else runs on it.

OLDEST=11 # CPython 3.11 …
NEWEST=13 # … to 3.13: ruptures 1.1.10 of the lock refuses 3.14
SOURCES="install or load one (RHEL: python3.12, SLES 15: python311, or a module), or set PYTHON=/path/to/python3.12"

# Valid also for Python 2 and 3.6; its arguments are the limits. Prints the minor version, and the interpreter itself, never one
# inside a virtual environment.
ASK='
import sys
limits = [(3, int(minor)) for minor in sys.argv[1:]]
if not limits[0] <= sys.version_info[:2] <= limits[1] or sys.implementation.name != "cpython":
    sys.exit(1)
print("%d %s" % (sys.version_info[1], sys._base_executable))
'

# Sets python. wheels: the folder of wheels, empty for a package index.
find_python() {
    unset PYTHONHOME PYTHONPATH
    fitting=
    if [ -n "$wheels" ]; then
        fitting=$(minors_of_the_wheels)
    fi
    seen=
    for candidate in $(candidates); do
        found=$(asked "$candidate") || continue
        minor=${found%% *} python=${found#* }
        if [ -z "$wheels" ] || one_of "$minor" "$fitting"; then
            return
        fi
        seen="$seen${seen:+, }3.$minor ($python)"
    done
    # In the order of what helps: a Python at all, then the wheels' own.
    if [ -z "$seen" ]; then
        die "Python 3.$OLDEST to 3.$NEWEST is required$(for_wheels), and $(what_is_here): $SOURCES"
    fi
    die "$wheels has $(summary_of_the_wheels); here: Python $seen, $(uname -m), glibc 2.$(glibc)." \
        "Where there is network, run: setup/wheels DIR --python-version ${seen%% *}$(platform);" \
        "or set PYTHON to a Python that fits the wheels"
}

candidates() {
    if [ -n "${PYTHON:-}" ]; then
        echo "$PYTHON"
        return
    fi
    echo python3
    minor=$NEWEST
    while [ "$minor" -ge "$OLDEST" ]; do
        echo "python3.$minor"
        minor=$((minor - 1))
    done
}

asked() { "$1" -c "$ASK" "$OLDEST" "$NEWEST" 2>/dev/null </dev/null; }

one_of() {
    case " $2 " in
    *" $1 "*) return 0 ;;
    *) return 1 ;;
    esac
}

for_wheels() {
    [ -z "$fitting" ] || echo " (3.$(echo "$fitting" | sed 's/ / or 3./g') for these wheels)"
}

what_is_here() {
    name=${PYTHON:-python3}
    version=$("$name" --version 2>&1 </dev/null | head -n 1 | tr -dc '[:alnum:]. ') || version=
    case $version in
    Python*) echo "$name is $version" ;;
    *) echo "$name is not one" ;;
    esac
}

# Minor version of glibc 2; 0 where the C library is another one.
glibc() {
    version=$(getconf GNU_LIBC_VERSION 2>/dev/null) || version=
    case $version in
    'glibc 2.'*) echo "${version#glibc 2.}" | cut -d. -f1 ;;
    *) echo 0 ;;
    esac
}

# The minor versions of Python for which every package of the folder has a wheel that runs here.
minors_of_the_wheels() { tags fits; }

# 'wheels for Python 3.12, x86_64, glibc 2.28 or newer'
summary_of_the_wheels() { tags summary; }

# Another processor than this machine's has to be named where the wheels are fetched.
platform() {
    [ "$(tags machines)" = "$(uname -m)" ] || echo " --platform manylinux_2_28_$(uname -m)"
}

# tags WHAT: reads the tags in the names of the wheels (PEP 425, PEP 600).
tags() {
    for wheel in "$wheels"/*.whl; do
        echo "${wheel##*/}"
    done | awk -v what="$1" -v here="$(uname -m)" -v glibc="$(glibc)" \
        -v oldest="$OLDEST" -v newest="$NEWEST" '
        # The glibc that a platform needs: its minor version; -1 of any platform, 99 if unknown.
        function needs(platform) {
            if (platform == "any" || platform ~ /^linux_/) return -1
            if (platform ~ /^manylinux1_/) return 5
            if (platform ~ /^manylinux2010_/) return 12
            if (platform ~ /^manylinux2014_/) return 17
            if (platform !~ /^manylinux_2_[0-9]+_/) return 99
            sub(/^manylinux_2_/, "", platform)
            return platform + 0
        }
        function machine_of(platform) {
            sub(/^(manylinux_2_[0-9]+|manylinux[0-9]+|linux)_/, "", platform)
            return platform
        }
        function runs(python, abi, minor) {
            if (python ~ /py3/) return 1
            if (abi ~ /^cp3[0-9]+$/) return abi == "cp3" minor
            sub(/^cp3/, "", python)
            return abi == "abi3" && python + 0 <= minor + 0
        }
        {
            sub(/\.whl$/, "")
            n = split($0, part, "-")
            if (n < 5) next
            packages[part[1]]
            abi = part[n - 1]
            if (abi ~ /^cp3[0-9]+$/) pythons[substr(abi, 4)]
            least = 99
            count = split(part[n], platforms, ".")
            for (i = 1; i <= count; i++) {
                need = needs(platforms[i])
                machine = machine_of(platforms[i])
                if (machine != "any") machines[machine]
                if (need < least && (machine == "any" || machine == here)) least = need
                if (need > highest && need < 99 && count == 1) highest = need
            }
            if (least > glibc + 0) {
                if (least < 99 && least > highest) highest = least
                next
            }
            for (m = oldest + 0; m <= newest + 0; m++)
                if (runs(part[n - 2], abi, m)) has[part[1], m]
        }
        function joined(set, before,    text, key) {
            for (key in set) text = text (text == "" ? "" : " or ") before key
            return text == "" ? "any" : text
        }
        END {
            for (m = oldest + 0; m <= newest + 0 && what == "fits"; m++) {
                complete = 1
                for (package in packages) if (!((package, m) in has)) complete = 0
                if (complete) found = found (found == "" ? "" : " ") m
            }
            if (what == "fits") print found
            if (what == "machines") print joined(machines, "")
            if (what == "summary") print "wheels for Python " joined(pythons, "3.") \
                ", " joined(machines, "") (highest > 0 ? ", glibc 2." highest " or newer" : "")
        }'
}
