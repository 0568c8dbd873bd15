try gtrace --version
try gtrace -V
