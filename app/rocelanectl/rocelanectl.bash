# SPDX-License-Identifier: BSD-3-Clause
# bash completion for rocelanectl: the program itself knows its words.
_rocelanectl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} word typed
	COMPREPLY=()
	# Names come from others: each is compared as it is, never expanded, and stands quoted in
	# the command line. (compgen -W expands its words: a name with $(...) in it would run.)
	while IFS= read -r word; do
		printf -v typed %q "$word"
		if [[ -n $word && ($word == "$cur"* || $typed == "$cur"*) ]]; then
			COMPREPLY+=("$typed")
		fi
	done < <("${COMP_WORDS[0]}" --complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null
		if [[ $cur == -* ]]; then
			printf '%s\n' -s -j -t --socket --json --timeout --help --version
		fi)
}
complete -o default -F _rocelanectl rocelanectl
