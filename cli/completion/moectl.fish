# Completion of moectl for fish; what may follow is said by moectl itself (cli/complete.c).
complete -c moectl -a '(moectl complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
