# Scripts and binaries that exist and still do not run.
mkdir folder
printf '#!/no/such/interpreter\n' >lost
printf '\177ELF\n' >broken
chmod +x lost broken
try gtrace run -- ./folder
try gtrace run -- ./lost
try gtrace run -- train.py
try gtrace run -- --active 3 true
try gtrace run -q -- ./broken # as execvp(3): run by the shell
