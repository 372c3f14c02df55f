# shellcheck shell=sh
# GROMACS on all cores: a cube of water with an edge of EDGE nm, STEPS steps of 2 fs. The box is filled by
# gmx itself, from the coordinates and the force field that it brings.
# Run by siteproof's node.sh in the node's own folder; prints mdrun's log.
# shellcheck source=siteproof/checks/on_node/application.sh
. "$1/application.sh"
choose gmx gmx_mpi
echo "program=gromacs" >>facts
begin_work
GMX_MAXBACKUP=-1
export GMX_MAXBACKUP
cat >run.mdp <<END
integrator = md
dt = 0.002
nsteps = $STEPS
nstenergy = 100
nstcalcenergy = 100
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
fourierspacing = 0.12
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = 300
gen-vel = yes
gen-temp = 300
gen-seed = 1978
ld-seed = 1978
END
prepare() {
    "$program" -quiet solvate -cs spc216 -box "$EDGE" "$EDGE" "$EDGE" -o water.gro &&
        molecules=$(awk 'NR == 2 { print $1 / 3; exit }' water.gro) &&
        cat >water.top <<END &&
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
SOL $molecules
END
        "$program" -quiet grompp -f run.mdp -c water.gro -p water.top -o run.tpr
}
prepare >prepared 2>&1 || { cat prepared && exit 1; }
if [ "$program" = gmx ]; then
    unset OMP_NUM_THREADS # mdrun divides the cores among ranks and threads itself
    gmx -quiet mdrun -nt "$cores" -s run.tpr -g run.log >ran 2>&1
else
    ranks gmx_mpi -quiet mdrun -ntomp 1 -s run.tpr -g run.log >ran 2>&1
fi || { cat ran && exit 1; }
cat run.log
