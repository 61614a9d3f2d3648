# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Completion of the weir command for bash. The command tells its words, options and values itself:
# 'weir --complete', 'weir COMMAND --complete [OPTION]', and --help for those of weir lab.

# Prints the words that follow weir and name a command: "perf exchange", "lab net up".
_weir_command()
{
	local words=("${COMP_WORDS[@]:1:COMP_CWORD-1}")

	case "${words[*]:0:2}" in
	"lab net") printf '%s\n' "${words[@]:0:3}" ;;
	"pool volume") printf '%s\n' "${words[@]:0:3}" ;;
	lab* | blk* | config* | fs | "fs "* | pool* | "perf exchange" | "perf volume") printf '%s\n' "${words[@]:0:2}" ;;
	*) printf '%s\n' "${words[@]:0:1}" ;;
	esac
}

_weir_options()
{
	case $1 in
	lab) "${COMP_WORDS[0]}" "$@" --help 2>/dev/null | grep -o -e '--[a-z][a-z-]*' | sort -u ;;
	*) "${COMP_WORDS[0]}" "$@" --complete 2>/dev/null ;;
	esac
}

# Prints the words that may follow the words of a command, without options.
_weir_words()
{
	"${COMP_WORDS[0]}" "$@" --complete 2>/dev/null | grep -v '^-'
}

# Prints the values of an option, or the name of its argument: "FILE".
_weir_values()
{
	local option=$1
	shift
	case $1,$option in
	lab,--profile) printf '%s\n' connectx-3 connectx-5 connectx-5-edr ;;
	lab,*) "${COMP_WORDS[0]}" "$@" --help 2>/dev/null |
		sed -n "s/^ .*$option \({[^}]*}\|[[:upper:]|]*\).*/\1/p" | tr -d '{}' | tr ',' '\n' | sort -u ;;
	*) "${COMP_WORDS[0]}" "$@" --complete "$option" 2>/dev/null ;;
	esac
}

_weir_arguments()
{
	local cur=$1
	shift
	case $* in
	run) compgen -c -- "$cur" ;;
	share | top | metrics | trace | fault | doctor) ;;
	"config check") compgen -f -- "$cur" ;;
	"config show") compgen -W "serve mount share metrics" -- "$cur" ;;
	help) compgen -W "$(_weir_words)" -- "$cur" ;;
	lab) compgen -W "list run report what-if calibrate hunt net" -- "$cur" ;;
	"lab run") compgen -W "$("${COMP_WORDS[0]}" lab list 2>/dev/null | cut -d ' ' -f 1)" -- "$cur" ;;
	"lab net") compgen -W "up run link split status down" -- "$cur" ;;
	lab*) ;;
	blk | config | fs | key | pool | "pool volume") compgen -W "$(_weir_words "$@")" -- "$cur" ;;
	"blk attach") compgen -A hostname -- "$cur" ;;
	blk*) compgen -W "$(cd /dev && compgen -G 'weir[0-9]*')" -- "$cur" ;;
	pool*) compgen -W "file: etcd:http:// $(cd "${WEIR_POOLS-/etc/weir/pools}" 2>/dev/null && ls)" -- "$cur" ;;
	"fs "* | key*) compgen -f -- "$cur" ;;
	perf) ((COMP_CWORD == 2)) && compgen -W "exchange volume" -- "$cur"; compgen -A hostname -- "$cur" ;;
	mount) compgen -A hostname -- "$cur"; compgen -d -- "$cur" ;;
	*) compgen -A hostname -- "$cur" ;;
	esac
}

_weir()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command values

	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --complete 2>/dev/null)" -- "$cur")
		return
	fi
	mapfile -t command < <(_weir_command)
	[[ $prev != -?* ]] || values=$(_weir_values "$prev" "${command[@]}")
	case $values,$cur in
	DEVICE,*) values="auto softnic $(ls /sys/class/infiniband 2>/dev/null)" ;;
	FILE,*) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	[[:upper:]]*,*) COMPREPLY=(); return ;;
	,-*) values=$(_weir_options "${command[@]}") ;;
	,*) mapfile -t COMPREPLY < <(_weir_arguments "$cur" "${command[@]}"); return ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$values" -- "$cur")
}
complete -o filenames -F _weir weir
