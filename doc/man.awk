# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes a man page: awk -v version=VERSION -f man.awk TABLE FINDINGS SHARED PAGE.in
#
# TABLE		what doc/table.c prints: order, spelling, arguments and groups of the options are from here
# FINDINGS	lib/diag/findings.def; PAGE.in has .\" FINDINGS where their list goes
# SHARED	texts of options that several tools have
# PAGE.in	the page. Its section OPTIONS holds texts: after .TP a line that names the options a text is for
#		(arguments and fonts do not matter), then the text. An option without one gets its line of
#		--help. What stands behind .SS TITLE, before the first .TP, is about that group of options.

function fail(text)
{
	print FILENAME ":" FNR ": " text | "cat >&2"
	failed = 1
	exit 1
}

function roff(text)
{
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text
}

# Key of an option in a head line: its long name, or its letter.
function add_head(line, owner,    n, words, i, word, keys)
{
	gsub(/\\f[BIRP]/, " ", line)
	gsub(/\\-/, "-", line)
	gsub(/\[|\]|[=",]/, " ", line)
	n = split(line, words, " ")
	for (i = 1; i <= n; i++) {
		word = words[i]
		if (word ~ /^--[A-Za-z0-9]/)
			word = substr(word, 3)
		else if (word ~ /^-[A-Za-z0-9]/)
			word = substr(word, 2, 1)
		else
			continue
		keys++
		if (!(word in row)) {
			if (owner == "page")
				fail("no such option: " word)
			continue
		}
		text_of[row[word]] = blocks
		# a page's own text takes the place of a shared one
	}
	if (!keys)
		fail("no option is named: " line)
}

# Lines of texts, of either file.
function take_text(owner)
{
	if ($0 ~ /^\.SS /) {
		title = substr($0, 5)
		gsub(/"/, "", title)
		in_block = head_is_next = 0
	} else if ($0 == ".TP") {
		blocks++
		in_block = head_is_next = 1
	} else if (head_is_next) {
		add_head($0, owner)
		head_is_next = 0
	} else if (in_block) {
		body[blocks] = body[blocks] $0 "\n"
	} else if (title != "") {
		intro[title] = intro[title] $0 "\n"
	}
}

function spell(r,    text)
{
	if (letter[r] != "-")
		text = "\\fB\\-" letter[r]
	if (name[r] != "-") {
		text = text (text == "" ? "" : "\\fR, ") "\\fB" roff("--" name[r])
		if (arg[r] ~ /^\[/)
			text = text "\\fR[\\fB=" argument(substr(arg[r], 2, length(arg[r]) - 2)) "\\fR]"
		else if (arg[r] != "-")
			text = text "=" argument(arg[r]) "\\fR"
		else
			text = text "\\fR"
	} else {
		text = text (arg[r] == "-" ? "" : argument(arg[r])) "\\fR"
	}
	return text
}

function argument(text)
{
	return text ~ /^[a-z]+$/ ? text : "\\fI" text
}

function print_option(r,    b, i, head)
{
	b = text_of[r]
	head = spell(r)
	done[r] = 1
	for (i = r + 1; i <= rows; i++) {
		# those of the same text, and those that --help describes with it
		if (group[i] != group[r] || done[i])
			continue
		if (b && text_of[i] == b || help[i] == "-" && !text_of[i] && only_negations(r, i)) {
			head = head ", " spell(i)
			done[i] = 1
		}
	}
	print ".TP"
	print head
	if (b)
		printf "%s", body[b]
	else
		print toupper(substr(roff(help[r]), 1, 1)) substr(roff(help[r]), 2) "."
}

function only_negations(from, to,    i)
{
	for (i = from + 1; i <= to; i++)
		if (help[i] != "-")
			return 0
	return 1
}

# Names alone: there is nothing to be said of what is refused.
function print_absent(g,    i, list)
{
	for (i = 1; i <= rows; i++)
		if (group[i] == g && help[i] == "not implemented") {
			list = list (list == "" ? "" : ",\n") "\\fB" (name[i] == "-" ? "\\-" letter[i] : roff("--" name[i])) "\\fR"
			done[i] = 1
		}
	if (list != "")
		print list "."
}

function print_options(    g, r)
{
	for (g = 1; g <= groups; g++) {
		if (groups > 1)
			print ".SS " heading[g]
		printf "%s", intro[heading[g]]
		print_absent(g)
		for (r = 1; r <= rows; r++)
			if (group[r] == g && !done[r])
				print_option(r)
	}
}

function print_findings(    i)
{
	for (i = 1; i <= kinds; i++)
		print ".TP\n" kind[i] "\n" ids[i] "."
}

FNR == 1 { file++ }

file == 1 && $0 ~ /^group/ {
	split($0, field, "\t")
	heading[++groups] = field[2]
}
file == 1 && $0 ~ /^option/ {
	split($0, field, "\t")
	rows++
	letter[rows] = field[2]
	name[rows] = field[3]
	arg[rows] = field[4]
	help[rows] = field[6]
	group[rows] = groups
	row[field[3] == "-" ? field[2] : field[3]] = rows
	if (field[2] != "-")
		row[field[2]] = rows
}

file == 2 && /^\/\* [a-z ]+ \*\/$/ {
	kind[++kinds] = substr($0, 4, length($0) - 6)
}
file == 2 && /^FINDING\(/ {
	split($0, field, "[(,\") ]+")
	id = roff(field[4])
	if (field[3] ~ /^WARNING/)
		id = id " (a warning)"
	else if (field[3] ~ /^INFO/)
		id = id " (for information)"
	ids[kinds] = ids[kinds] (ids[kinds] == "" ? "" : ",\n") id
}

file == 3 && !/^\.\\"/ { take_text("shared") }

file == 4 && /^\.SH / {
	if (in_options)
		print_options()
	in_options = 0
}
file == 4 && in_options { take_text("page"); next }
file == 4 && /^\.SH OPTIONS$/ {
	in_options = 1
	title = ""
	in_block = 0
}
file == 4 && /^\.\\" FINDINGS$/ { print_findings(); next }
file == 4 { gsub(/@VERSION@/, version); print }

END {
	if (!failed && (!rows || !kinds))
		fail("no options, or no findings")
	exit failed
}
