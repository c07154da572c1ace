"""Which folders are packages. Everything else about the project is in pyproject.toml."""

from setuptools import find_packages, setup

# The folder is called kernels; the import name is our own, because a widely installed package is called `kernels`.
setup(
    packages=[*find_packages(include=["pspin_lite", "pspin_lite.*"]), "pspin_kernels"],
    package_dir={"pspin_kernels": "kernels"},
)
