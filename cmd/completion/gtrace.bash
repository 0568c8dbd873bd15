# Completion of gtrace's command lines in bash: source this, or put it where bash-completion looks, as
# 'make install' does. The words are those of the gtrace on the command line, which lists its options
# (cmd/options.h says how).

# Read the lines of a command, or of gtrace itself, into the variables of _gtrace.
_gtrace_read() { # [COMMAND]
	local name letter kind text
	options=() commands=() kinds=()
	while read -r name letter kind text; do
		if [[ $name == operand ]]; then
			kinds[operand]=$kind
		elif [[ $kind == command ]]; then
			commands+=("$name")
		else
			options+=("$name")
			kinds[$name]=$kind
			[[ $letter == - ]] || kinds[$letter]=$kind
		fi
	done < <("$program" "$@" --completion 2>/dev/null </dev/null)
}

# Offer what a word of this kind can be.
_gtrace_offer() { # KIND WORD
	local choices=${1#choice:}
	case $1 in
	choice:*) mapfile -t COMPREPLY < <(compgen -W "${choices//,/ }" -- "$2") ;;
	directory) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
	file) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
	program) mapfile -t COMPREPLY < <(compgen -c -- "$2") ;;
	esac
	case $1 in directory | file) compopt -o filenames 2>/dev/null ;; esac
}

_gtrace() {
	local program=${COMP_WORDS[0]/#\~\//$HOME/} word=${COMP_WORDS[COMP_CWORD]} this command='' value=''
	local -a options commands
	local -A kinds
	local i
	COMPREPLY=()
	_gtrace_read
	for ((i = 1; i < COMP_CWORD; i++)); do
		this=${COMP_WORDS[i]}
		if [[ -n $value ]]; then # of the option before; bash takes "--name=value" for three words
			[[ $this == = ]] || value=''
		elif [[ $this == -- && ${kinds[operand]} == program ]]; then
			((i++))
			break
		elif [[ $this == -* ]]; then
			value=${kinds[$this]:-flag}
			value=${value#flag}
		elif [[ -z $command ]]; then
			command=$this
			_gtrace_read "$command"
		elif [[ ${kinds[operand]} == program ]]; then
			break
		fi
	done
	if ((i < COMP_CWORD)) || [[ $i == "$COMP_CWORD" && ${COMP_WORDS[i - 1]} == -- ]]; then
		# The command line of another program, which bash-completion may know.
		if declare -F _command_offset >/dev/null; then
			_command_offset "$i"
		else
			_gtrace_offer "$( ((i == COMP_CWORD)) && echo program || echo file)" "$word"
		fi
	elif [[ -n $value ]]; then
		[[ $word != = ]] || word=''
		_gtrace_offer "$value" "$word"
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${options[*]}" -- "$word")
	elif [[ -z $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${commands[*]}" -- "$word")
	else
		_gtrace_offer "${kinds[operand]}" "$word"
	fi
}

complete -F _gtrace gtrace
