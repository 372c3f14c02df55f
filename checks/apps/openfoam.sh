# shellcheck shell=sh
# OpenFOAM's icoFoam on all cores: a cavity of EDGE x EDGE cells under a lid that moves, in STEPS time
# steps. Run by siteproof's node.sh in the node's own folder; prints the logs without the lines of the
# linear solvers, the probes, and the time that icoFoam took.
# shellcheck source=siteproof/checks/on_node/application.sh
. "$1/application.sh"
choose icoFoam
echo "program=icoFoam" >>facts
if [ -z "${WM_PROJECT_DIR:-}" ] && [ -d /usr/share/openfoam/etc ]; then # where Debian has it
    WM_PROJECT_DIR=/usr/share/openfoam
    export WM_PROJECT_DIR
fi
begin_work
tasks=$(((EDGE * EDGE + 511) / 512)) # a rank needs some cells to work on, and a row of them
[ "$tasks" -le "$((EDGE / 2))" ] || tasks=$((EDGE / 2))
[ "$tasks" -le "$cores" ] || tasks=$cores

dictionary() { # CLASS FILE: what it is to read from standard input
    { echo "FoamFile { version 2.0; format ascii; class $1; object ${2##*/}; }" && cat; } >"$2"
}
mkdir 0 constant system
dictionary dictionary system/controlDict <<END
application icoFoam;
startFrom startTime; startTime 0; stopAt endTime; endTime 15;
deltaT $(awk -v steps="$STEPS" 'BEGIN { printf "%.12g", 15 / steps }');
writeControl timeStep; writeInterval 1000000000; writeFormat ascii; writePrecision 8;
timePrecision 8; runTimeModifiable false;
functions
{
    centre
    {
        type probes; libs (sampling); fields (U); interpolationScheme cellPoint; writeControl onEnd;
        probeLocations ((0.5 0.4531 0.05) (0.5 0.6172 0.05));
    }
}
END
dictionary dictionary system/fvSchemes <<END
ddtSchemes { default Euler; }
gradSchemes { default Gauss linear; }
divSchemes { default none; div(phi,U) Gauss linear; }
laplacianSchemes { default Gauss linear orthogonal; }
interpolationSchemes { default linear; }
snGradSchemes { default orthogonal; }
END
dictionary dictionary system/fvSolution <<END
solvers
{
    p { solver PCG; preconditioner DIC; tolerance 1e-6; relTol 0.05; }
    pFinal { solver PCG; preconditioner DIC; tolerance 1e-6; relTol 0; }
    U { solver smoothSolver; smoother symGaussSeidel; tolerance 1e-6; relTol 0; }
}
PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }
END
dictionary dictionary system/blockMeshDict <<END
vertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 0.1) (1 0 0.1) (1 1 0.1) (0 1 0.1));
blocks (hex (0 1 2 3 4 5 6 7) ($EDGE $EDGE 1) simpleGrading (1 1 1));
boundary
(
    lid { type wall; faces ((3 7 6 2)); }
    walls { type wall; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0)); }
    sides { type empty; faces ((0 3 2 1) (4 5 6 7)); }
);
END
dictionary dictionary system/decomposeParDict <<END
numberOfSubdomains $tasks; method simple; simpleCoeffs { n (1 $tasks 1); delta 0.001; }
END
dictionary dictionary constant/transportProperties <<END
nu 0.01;
END
dictionary volVectorField 0/U <<END
dimensions [0 1 -1 0 0 0 0];
internalField uniform (0 0 0);
boundaryField
{
    lid { type fixedValue; value uniform (1 0 0); }
    walls { type noSlip; }
    sides { type empty; }
}
END
dictionary volScalarField 0/p <<END
dimensions [0 2 -2 0 0 0 0];
internalField uniform 0;
boundaryField { lid { type zeroGradient; } walls { type zeroGradient; } sides { type empty; } }
END

clock() { # seconds, in hundredths
    read -r up _ </proc/uptime
    echo "$up"
}
blockMesh 2>&1 || exit
if [ "$tasks" -gt 1 ]; then
    decomposePar >decomposed 2>&1 || { cat decomposed && exit 1; }
fi
begun=$(clock)
if [ "$tasks" -gt 1 ]; then
    ranks icoFoam -parallel
else
    icoFoam
fi >solved 2>&1
ended=$?
over=$(clock)
grep -Ev 'Solving for|^Courant|^time step cont|^$' solved
[ "$ended" -eq 0 ] || exit "$ended"
cat postProcessing/centre/0/U
awk -v a="$begun" -v b="$over" 'BEGIN { printf "elapsed %.2f s\n", b - a }'
