"""Tools around the project: doctor, map of equations, measuring, benchmarks, compiled kernels."""
