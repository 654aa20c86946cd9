# Writes so many lines of 20 bytes, each with its own write(2). Perl, because it writes faster than Node reads.
use strict;
use warnings;

my $line = "0123456789abcdefghi\n";
for (1 .. $ARGV[0]) {
    defined syswrite(STDOUT, $line) or die "write: $!";
}
