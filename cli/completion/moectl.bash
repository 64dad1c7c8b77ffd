# Completion of moectl for bash; what may follow is said by moectl itself (cli/complete.c).
_moectl() {
	mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete -- \
		"${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
}
complete -o default -F _moectl moectl
