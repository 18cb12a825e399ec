# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fills in completions: awk -v shell=bash|zsh|fish -v tool=TOOL -f options.awk TABLE... TEMPLATE
#
# In TEMPLATE, @TOOL@ stands for TOOL, and a line "@TABLE@ fsck" for the options of fsck.erofs, from
# doc/fsck.table, for a string in single quotes. One a line:
#	-x|--name no|req|opt WORDS|DESCRIPTION
# no, req, opt: an argument; opt: with = only. WORDS as CLI_VALUES has them, and COMPRESSOR: what mkfs.erofs
# names in --version.

function quote(text)
{
	if (shell == "fish") {
		gsub(/\\/, "\\\\", text)
		gsub(/'/, "\\'", text)
	} else {
		gsub(/'/, "'\\''", text)
	}
	return text
}

function values(    word)
{
	word = field[4]
	gsub(/[][]/, "", word)
	if (of == "mkfs" && field[2] == "z")
		return "COMPRESSOR"
	if (field[5] != "-")
		return field[5]
	return word ~ /^(FILE|DIR|PATH|GLOB|[a-z]+)$/ ? word : ""
}

FNR == 1 {
	of = FILENAME
	sub(/\.table$/, "", of) ? 0 : of = ""
	sub(/.*\//, "", of)
}

of != "" && /^option/ {
	split($0, field, "\t")
	if (field[6] == "not implemented")
		next
	how = field[4] == "-" ? "no" : field[4] ~ /^\[/ ? "opt" : "req"
	words = how == "no" ? "" : values()
	help = field[6] == "-" ? "" : field[6]
	if (field[2] != "-")
		lines[of] = lines[of] "-" field[2] " " (how == "req" ? "req " words : "no") "|" help "\n"
	if (field[3] != "-")
		lines[of] = lines[of] "--" field[3] " " how (words == "" ? "" : " " words) "|" help "\n"
}

of == "" && /^@TABLE@ / { of_line = $0; gsub(/@TOOL@/, tool, of_line); split(of_line, part, " ")
	if (lines[part[2]] == "")
		exit 1
	printf "%s", quote(lines[part[2]])
	next
}
of == "" { gsub(/@TOOL@/, tool); print }
