"""What compilers and the interpreter tell about the Triton kernels."""
