# shellcheck shell=sh
# The site's workload on a file system: each application alone, then all at the same time, on nodes of
# their own. WORKLOAD has lines NAME PROGRAM NODES VARIABLE=VALUE...; while all run, the counters of all
# nodes are read each second. Each application on each node is a command of this point (run.N).
# Run by siteproof's sweep.sh in the point's own folder.
stage=$1
NEEDED=$((NODE_COUNT * 1000000000))
# shellcheck source=siteproof/checks/on_node/file_system.sh
. "$1/file_system.sh"
begin_test
result=$(pwd) numbered=1 all=$NODES running=''
mkdir "$folder/test.tree" || stop "$FS_PATH: cannot be written to"
SLURM_CPU_BIND=none # a rank of a step is a program on all cores
export SLURM_CPU_BIND

on_nodes() { # COMMAND...: one on each of `NODES`; without Slurm there is this node only
    if [ -n "$SWEEP_SRUN" ]; then
        launch_each "$@"
    else
        "$@"
    fi
}

split_nodes() { # COUNT: the next ones of `left` into `nodes`
    count=$1 nodes=''
    # shellcheck disable=SC2086  # a list of nodes
    set -- $left
    while [ "$count" -gt 0 ]; do
        nodes="${nodes:+$nodes }$1"
        shift
        count=$((count - 1))
    done
    left=$*
}

# start PHASE NAME PROGRAM COUNT VARIABLE=VALUE...: the application on `nodes`, and wait for it. With
# a number of tasks it is started once, here, and starts those itself.
start() {
    phase=$1 name=$2 program=$3 number_of=$4
    shift 4
    (
        NODES=$nodes NODE_COUNT=$number_of POINT_FOLDER=$result/step.$phase.$name
        mkdir "$POINT_FOLDER" || exit
        # shellcheck disable=SC2086  # a list of nodes
        set -- sh "$stage/member.sh" "$stage" "$result" "$numbered" "$phase" "$name" "$program" \
            "$folder/test.tree" "$@" -- $nodes
        case $* in
        *' TASKS='*) SLURM_JOB_ID=$SITEPROOF_JOB SLURM_MPI_TYPE=$SITEPROOF_MPI ONCE=yes "$@" ;;
        *) on_nodes "$@" ;;
        esac
    )
}

each() { # PHASE: all applications, in the mix all at once
    left=$all
    while read -r name program number_of variables; do
        split_nodes "$number_of"
        if [ "$1" = mix ]; then
            # shellcheck disable=SC2086  # a list of variables
            start "$1" "$name" "$program" "$number_of" $variables </dev/null &
            running="$running $!"
        else
            # shellcheck disable=SC2086
            start "$1" "$name" "$program" "$number_of" $variables </dev/null
        fi
        numbered=$((numbered + number_of))
    done <<END
$WORKLOAD
END
}

each alone
mkdir "$result/step.counters"
(
    POINT_FOLDER=$result/step.counters
    # shellcheck disable=SC2016  # the variables are those of each node
    on_nodes sh -c 'node=${SLURMD_NODENAME:-$4}
        exec sh "$1/counters.sh" "$node" "$2" "$3/stop" >"$3/of.$node"' \
        counters "$stage" "$top" "$POINT_FOLDER" "$node"
) &
sampler=$!
sleep 2 # what they read before the mix is the first value of each counter
each mix
# shellcheck disable=SC2086  # a list of processes
wait $running
: >"$result/step.counters/stop"
wait "$sampler"
mkdir "$result/run.$numbered" && cd "$result/run.$numbered" || exit
printf '%s\n' phase=mix program=counters >dims
cat "$result"/step.counters/of.* >stdout
echo "end of counters" >>stdout
: >stderr
echo 0 >"$result/run.$numbered/exit"
cd "$result" && rm -rf step.*
