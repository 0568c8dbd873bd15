# Not a trace: one line that says what it is instead. Exit status 1.
: >empty.json
: | gzip >empty.json.gz
echo '<!DOCTYPE html><html></html>' >page.json
printf 'PK\003\004rest' >archive.json
printf 'version https://git-lfs.github.com/spec/v1\n' >pointer.json
echo '{"a": 1}' >other.json
try gtrace summary no-such-file.json
try gtrace summary empty.json
try gtrace summary empty.json.gz
try gtrace summary page.json
try gtrace summary archive.json
try gtrace summary pointer.json
try gtrace summary other.json
try gtrace summary other.json page.json
try gtrace summary - </dev/null

# Not a command line: exit status 2.
try gtrace summary --frobnicate x.json
try gtrace summary --limit -1 other.json
try gtrace summary --format xml other.json
try gtrace summary --sort size other.json
try gtrace summary --by op,frame other.json
try gtrace summary --by op,kernel other.json
try gtrace summary --stack-depth 0 other.json
try gtrace summary --by op --stack-depth 2 other.json
try gtrace summary --filter '(' other.json
