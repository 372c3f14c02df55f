# shellcheck shell=sh
# The least that a point can measure; with POINT_PAIRED=yes beside a bare srun of the same command,
# which comes first in every other point. A stamp is the time of an empty file: no process is
# started for it.
# shellcheck disable=SC2153  # settings and the point's variables
echo "program=trivial" >>facts

stamp() { : >"$STAMPS/$POINT_CASE.$1"; }

bare() {
    stamp bare.begin
    srun --jobid="$SITEPROOF_JOB" --overlap --mpi=none --nodes="$NODE_COUNT" --ntasks="$TASKS" \
        echo "answer 1" >bare
    stamp bare.end
}

ours() {
    stamp launch.begin
    run -- launch echo "answer 1"
    stamp launch.end
}

stamp begin
if [ "$POINT_PAIRED" = no ]; then
    ours
elif [ $((POINT_CASE % 2)) -eq 0 ]; then
    bare && ours
else
    ours && bare
fi
