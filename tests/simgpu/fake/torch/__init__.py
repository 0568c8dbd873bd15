"""A stand-in for torch, just large enough for what gtrace hooks: optimizer steps, the profiler."""

__version__ = '2.11.0+simgpu'
