"""Software by Spack: what spack-envs/ describes, what is built of it here, and what is missing."""
