#!/bin/sh
# SPDX-License-Identifier: MIT
# Each public header compiles alone, as C99 and as C++, without a warning.
. tests/tap.sh

compiles() { # compiles COMPILER LANGUAGE STANDARD HEADER
    echo "#include \"$4\"" | $1 -x "$2" -std="$3" -Wall -Wextra -Wpedantic -Werror -Iinclude \
        -fsyntax-only - 2>&1 | sed 's/^/# /' | grep . && return 1
    return 0
}

cc=${CC:-gcc}
cxx=$(command -v g++ || command -v clang++ || true)
for path in include/*.h; do
    header=${path#include/}
    ok "$header as C99" compiles "$cc" c c99 $header
    if [ -n "$cxx" ]; then
        ok "$header as C++11" compiles "$cxx" c++ c++11 $header
    else
        skip "$header as C++11" 'no C++ compiler'
    fi
done

# A function has a comment above it (shared with those that follow without a blank line) or behind it;
# what the comment that opens the section says counts too. One that can fail says what it returns and
# what it costs; text that it gives away, who frees it.
undescribed() {
    perl -0777 -ne '
        my ($section, $above) = ("", "");
        while (m{(\n[ \t]*\n)|(/\*.*?\*/)|^(TY_API\b[^;]*;)(?:[ \t]*(/\*.*?\*/))?|\S}gsm) {
            my ($blank, $comment, $function, $behind) = ($1, $2, $3, $4 // "");
            if ($blank) { $above = "" }
            elsif ($comment && $comment =~ m{^/\* ----}) { $section = $comment; $above = "" }
            elsif ($comment) { $above = $comment }
            elsif (!$function) { $above = "" }
            else {
                my $own = $above . $behind;
                my $all = $own . $section;
                my @lacks = $own ? () : ("comment");
                push @lacks, "returns" if $function =~ /TY_MUST_CHECK/ && $all !~ /returns/i;
                push @lacks, "cost" if $function =~ /TY_MUST_CHECK/ && $all !~ /cost/i;
                push @lacks, "who frees" if $function =~ /^TY_API char \*/ && $all !~ /free/i;
                $function =~ /(ty_\w+)\s*\(/;
                print "# $ARGV: $1 lacks: @lacks\n" if @lacks;
            }
        }' include/*.h
}
described() {
    missing=$(undescribed)
    [ -z "$missing" ] || { echo "$missing"; return 1; }
}
ok 'every public function is described: returns, cost, who frees' described
ok 'trainyard.h can be read in one sitting' [ "$(wc -l <include/trainyard.h)" -lt 900 ]
done_tests
