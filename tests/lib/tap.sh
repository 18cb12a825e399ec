# SPDX-License-Identifier: GPL-2.0-or-later
# TAP for tests in shell: . tap.sh, then ok/not_ok/is/run_is/skip, at the end done_testing.

tap_count=0
tap_failed=0

ok()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $*"
}

not_ok()
{
	tap_count=$((tap_count + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_count - $*"
}

# is GOT WANTED NAME
is()
{
	if [ "$1" = "$2" ]; then
		ok "$3"
	else
		not_ok "$3"
		printf 'got:    %s\nwanted: %s\n' "$1" "$2" | sed 's/^/# /'
	fi
}

# status_is WANTED NAME COMMAND...: runs it with both streams kept in $tap_out and $tap_err
status_is()
{
	tap_wanted=$1
	tap_name=$2
	shift 2
	tap_files=$(mktemp -d)
	tap_status=0
	"$@" >"$tap_files/out" 2>"$tap_files/err" || tap_status=$?
	tap_out=$(cat "$tap_files/out")
	tap_err=$(cat "$tap_files/err")
	rm -r "$tap_files"
	is "$tap_status" "$tap_wanted" "$tap_name"
	if [ "$tap_status" != "$tap_wanted" ]; then
		printf '%s\n%s\n' "$tap_out" "$tap_err" | sed 's/^/# /'
	fi
}

# skip NAME REASON
skip()
{
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

skip_all()
{
	echo "1..0 # SKIP $*"
	exit 0
}

done_testing()
{
	echo "1..$tap_count"
	[ "$tap_failed" -eq 0 ]
	exit
}
