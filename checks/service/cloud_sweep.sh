# shellcheck shell=sh
# Run POINT_SERVERS servers on a cloud at one time, count them, and remove all: siteproof.services.
# Run by siteproof's sweep.sh with SITEPROOF_PYTHON and SITEPROOF_STAGE set.
if ! "$SITEPROOF_PYTHON" -c 'import siteproof.services' 2>/dev/null; then
    echo "$SITEPROOF_PYTHON does not have Siteproof here: tests of services need its .venv" >&2
    exit 127
fi
echo program=cloud >>facts
# Without the point's mark, by which the walk ends what outlives a point: the guardian must, as it
# removes what was created.
run -- env -u SITEPROOF_POINT "$SITEPROOF_PYTHON" -m siteproof.services \
    "$SITEPROOF_STAGE/service.json" servers="$POINT_SERVERS" batch="${POINT_BATCH:-1}" \
    rate="${POINT_RATE:-unlimited}" networks="${POINT_NETWORKS:-1}" limit="$POINT_LIMIT"
