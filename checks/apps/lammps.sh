# shellcheck shell=sh
# LAMMPS, one rank a core: a Lennard-Jones fluid of CELLS x CELLS x CELLS cells of its lattice with four
# atoms each, STEPS steps; over several nodes PARTS times as long. Run by siteproof's node.sh in the node's
# own folder, or by scaling.sh; prints LAMMPS' output.
# shellcheck source=siteproof/checks/on_node/application.sh
. "$1/application.sh"
choose lmp lmp_mpi lmp_serial
echo "program=lammps" >>facts
begin_work
cat >melt.in <<END
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 $CELLS 0 $CELLS 0 $((CELLS * ${PARTS:-1}))
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 1978 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo_style one
thermo $STEPS
run $STEPS
END
ranks "$program" -in melt.in -log none
