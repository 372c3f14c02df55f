# shellcheck shell=sh
# Use a service as its users do: siteproof.services makes the steps and removes what it has created.
# Run by siteproof's node.sh with SITEPROOF_PYTHON and SITEPROOF_STAGE set.
if ! "$SITEPROOF_PYTHON" -c 'import siteproof.services' 2>/dev/null; then
    echo "$SITEPROOF_PYTHON does not have Siteproof here: tests of services need its .venv" >&2
    exit 127
fi
run -- "$SITEPROOF_PYTHON" -m siteproof.services "$SITEPROOF_STAGE/service.json"
