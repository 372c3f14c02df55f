# shellcheck shell=bash
# Which of the site's modules the batch script has loaded; that script sources it before its step.
#
# modules_missing: a line for each that is not loaded, with the reason; nodes then measure nothing.
rm -f modules_missing
(
    # shellcheck source=/dev/null
    . ./settings
    is_loaded() {
        case $SITEPROOF_LOADED_BY in
        spack) spack find --loaded "$1" ;;
        *) module is-loaded "$1" ;;
        esac >/dev/null 2>&1
    }
    # Once more, for its words: those of the first time are in the job's output only.
    words_of() {
        case $SITEPROOF_LOADED_BY in
        spack) spack load "$1" ;;
        *) module load "$1" ;;
        esac 2>&1 | awk 'NF { text = text " " $0 } !NF && text { exit } END { print substr(text, 2, 300) }'
    }
    command=module
    [ "$SITEPROOF_LOADED_BY" != spack ] || command=spack
    # shellcheck disable=SC2153  # a list of modules
    for name in $SITEPROOF_MODULES; do
        if ! command -v "$command" >/dev/null; then
            echo "module $name is not loaded: the job has no command '$command';" \
                "prepare_cmds of the partition must define it"
        elif ! is_loaded "$name"; then
            echo "module $name is not loaded: $(words_of "$name")"
        fi
    done
) >modules_missing </dev/null
