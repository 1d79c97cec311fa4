# In an empty folder: key.pem, and cert.pem that is valid from a day before $1 to a day after, where $1
# is seconds since 1970. Which instant that is says openssl's own reading of text, not the clock.
set -e
cd "$2"
: > index.txt
echo 01 > serial
day() { date -u -d "@$1" +%Y%m%d%H%M%SZ; }
openssl req -new -newkey rsa:2048 -nodes -config /zoo/ca.cnf -keyout key.pem -out request.pem 2>log
openssl ca -batch -selfsign -config /zoo/ca.cnf -keyfile key.pem -in request.pem -out cert.pem \
    -notext -startdate "$(day $(($1 - 86400)))" -enddate "$(day $(($1 + 86400)))" 2>>log || cat log
