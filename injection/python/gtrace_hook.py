"""Marks training steps, and steps aside for the program's own profiler, once torch is imported."""


def install():
    return True
