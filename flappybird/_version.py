"""The release of this package; here, so that nobody imports the face of the package to learn it."""

__version__ = "0.1.0"
