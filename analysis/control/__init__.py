"""The control rule: designs are compared only where their manifests differ in the factors and in nothing else."""
