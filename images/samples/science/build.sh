#!/bin/sh
# Runs as root inside the new root file system: does what the sample openmpi does, and prepares the input of the programs.
set -eu

/build/mpi/build.sh

folder=/usr/local/share/science
mkdir -p "$folder/mpi4py"
cp /build/melt.lammps /build/hpccinf.txt "$folder"
tar -xzf /build/mpi4py-*.tar.gz -C "$folder/mpi4py" --strip-components=1 --wildcards '*/test/*'

# A box of water, with GROMACS' own coordinates and force field. Its energy is minimized first.
cd "$(mktemp -d)"
cp /build/water.mdp /build/water.top .
sed 's/^integrator.*/integrator = steep/; s/^nsteps.*/nsteps = 100/; /^dt/d' water.mdp >minimize.mdp
gmx -quiet solvate -cs spc216.gro -box 3.2 3.2 3.2 -p water.top -o water.gro
gmx -quiet grompp -f minimize.mdp -c water.gro -p water.top -o minimized.tpr
gmx -quiet mdrun -ntmpi 1 -ntomp 1 -deffnm minimized
gmx -quiet grompp -f water.mdp -c minimized.gro -p water.top -o "$folder/water.tpr"
