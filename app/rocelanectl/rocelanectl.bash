# SPDX-License-Identifier: BSD-3-Clause
# bash completion for rocelanectl: the program itself knows its words.
_rocelanectl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} words
	words=$("${COMP_WORDS[0]}" --complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
	case $cur in
	-*) words+=" -s -j -t --socket --json --timeout --help --version" ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -F _rocelanectl rocelanectl
