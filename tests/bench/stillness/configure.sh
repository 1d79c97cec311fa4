# As a configure script does: hundreds of small programs, one after the other.
i=0
while [ $i -lt "$1" ]; do
    i=$(expr $i + 1)
    echo "checking for function_$i" > conftest.$i
    sed -e "s/function/f/;s/_/-/" conftest.$i | tr a-z A-Z > out.$i
    if test -s out.$i && grep -q CHECKING out.$i; then cat out.$i >> config.log; fi
    rm -f conftest.$i out.$i
done
rm -f config.log
