use strict;
use warnings;
use POSIX qw(mktime strftime);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

printf "now %d\n", time;
printf "now %.6f\n", Time::HiRes::time();
printf "now %d\n", strftime("%s", localtime);
my $began = clock_gettime(CLOCK_MONOTONIC);
select undef, undef, undef, 0.2;
printf "waited %.3f 0.200\n", clock_gettime(CLOCK_MONOTONIC) - $began;
$began = clock_gettime(CLOCK_MONOTONIC);
eval { local $SIG{ALRM} = sub { die }; Time::HiRes::alarm(0.2); sleep 20; };
printf "waited %.3f 0.200\n", clock_gettime(CLOCK_MONOTONIC) - $began;
