# shellcheck shell=sh
# NWChem, one rank a core: the Hartree-Fock energy of a molecule of water in the basis BASIS.
# Run by siteproof's node.sh in the node's own folder; prints NWChem's output.
# shellcheck source=siteproof/checks/on_node/application.sh
. "$1/application.sh"
choose nwchem nwchem.openmpi nwchem.mpich
echo "program=nwchem" >>facts
echo "basis=$BASIS" >>facts
begin_work
cat >water.nw <<END
start water
geometry units angstrom noautosym nocenter
O 0.0 0.0 0.1173
H 0.0 0.7572 -0.4692
H 0.0 -0.7572 -0.4692
end
basis spherical
* library $BASIS
end
scf
direct
thresh 1e-8
end
task scf energy
END
ranks "$program" water.nw
