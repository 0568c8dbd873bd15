/*
 * nsys_proxy.c - what the stand-in for Nsight Systems has preloaded. It does nothing.
 */
extern const char fake_nsys_proxy;
const char fake_nsys_proxy = 1;
