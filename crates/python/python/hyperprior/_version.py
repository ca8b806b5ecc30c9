"""The version of the package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("hyperprior")
except PackageNotFoundError:  # run from a folder that was never installed
    __version__ = "0"
