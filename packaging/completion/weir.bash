# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Completion of the weir command for bash. Long options come from the command's own --help.
_weir()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} cmd=${COMP_WORDS[1]}
	local weir=${COMP_WORDS[0]}
	COMPREPLY=()

	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W \
			"serve lend mount blk share top run ping perf stat trace fault doctor lab key --help --version" -- "$cur")
		return
	fi
	case $prev in
	-d | --device)
		mapfile -t COMPREPLY < <(compgen -W \
			"auto softnic $(ls /sys/class/infiniband 2>/dev/null)" -- "$cur")
		return
		;;
	-k | --key)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	esac
	case $cmd,$cur in
	run,-*) ;;
	run,*)
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		return
		;;
	lab,*)
		if [[ ${COMP_WORDS[2]} == net && COMP_CWORD -gt 2 ]]; then
			mapfile -t COMPREPLY < <(compgen -W "up run link split status down
				$("$weir" lab net "${COMP_WORDS[3]}" --help 2>/dev/null |
					grep -o -e '--[a-z][a-z-]*' | sort -u)" -- "$cur")
			return
		fi
		mapfile -t COMPREPLY < <(compgen -W \
			"list run report what-if calibrate hunt net $("$weir" lab list 2>/dev/null | cut -d ' ' -f 1)" -- "$cur")
		return
		;;
	blk,*)
		if ((COMP_CWORD == 2)); then
			mapfile -t COMPREPLY < <(compgen -W "attach detach list stat" -- "$cur")
		elif [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W \
				"$("$weir" blk "${COMP_WORDS[2]}" --help 2>/dev/null |
					grep -o -e '--[a-z][a-z-]*' | sort -u)" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur"
				compgen -W "$(cd /dev && echo weir[0-9]*)" -- "$cur")
		fi
		return
		;;
	key,*)
		mapfile -t COMPREPLY < <(compgen -W "new" -- "$cur"; compgen -f -- "$cur")
		return
		;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W \
			"$("$weir" "$cmd" --help 2>/dev/null | grep -o -e '--[a-z][a-z-]*' | sort -u)" \
			-- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur"; compgen -f -- "$cur")
	fi
}
complete -o filenames -F _weir weir
