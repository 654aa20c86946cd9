// The files that shells read at their start, in their own languages. See marks.ts for the marks.

export const BASH =
  String.raw`# Marks of Holdfast for bash. Read instead of ~/.bashrc, which is read first.
__holdfast_nonce=$HOLDFAST_MARKS
unset HOLDFAST_MARKS HOLDFAST_ENV HOLDFAST_BASH
if [[ -z \${__holdfast_posix-} && -r ~/.bashrc ]]; then . ~/.bashrc; fi
# A program types here: a "!" in its commands is a "!".
set +H

if [[ -n $__holdfast_nonce ]]; then
  __holdfast_count=0
  __holdfast_tell() {
    printf '\033]133;D;%s;%s;%s\a' "$__holdfast_nonce" "$1" "\${PWD//[[:cntrl:]]/?}"
  }
  # Before the user's own prompt commands: what they print is no command's output.
  __holdfast_before() {
    local status=$?
    __holdfast_tell "$status"
    __holdfast_told=1
    return "$status"
  }
  # Behind them, because they may have made the prompt anew.
  __holdfast_after() {
    # The status again, should our commands before the prompt be gone; and a number that only a new prompt gets.
    local status=$? b=$'\033]133;B;'$__holdfast_nonce';$?;$((__holdfast_count+=1))'$'\a' c=$'\033]133;C;'$__holdfast_nonce$'\a' p=$'\033]133;P;'$__holdfast_nonce$'\a'
    if [[ -z \${__holdfast_told-} ]]; then
      __holdfast_tell "$status"
      __holdfast_install
    fi
    __holdfast_told=
    [[ \${PS1-} == *"$b"* ]] || PS1=\${PS1-}'\['$b'\]'
    [[ \${PS0-} == *"$c"* ]] || PS0=\${PS0-}$c
    [[ \${PS2-} == *"$p"* ]] || PS2=\${PS2-}'\['$p'\]'
    return "$status"
  }
  # An array is the only form in which every command sees the status of the user's: bash 5.1.
  # Nothing of ours is to be seen in a trace (set -x).
  __holdfast_install() {
    if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then
      local each kept=()
      for each in "\${PROMPT_COMMAND[@]}"; do
        [[ $each == *__holdfast_before* || $each == *__holdfast_after* ]] || kept+=("$each")
      done
      PROMPT_COMMAND=('{ __holdfast_before; } 2>/dev/null' "\${kept[@]}" '{ __holdfast_after; } 2>/dev/null')
    else
      PROMPT_COMMAND="{ __holdfast_before; } 2>/dev/null"$'\n'"\${PROMPT_COMMAND-}"$'\n'"{ __holdfast_after; } 2>/dev/null"
    fi
  }
  __holdfast_install
fi
`.replaceAll('\\${', '${');

/** dash, ash and other shells called sh: they expand parameters in their prompts, and have no hook before a command. */
/**
 * A `bash -c` reads it before its script. Only bash knows the statuses of a pipeline: it prints them last, in a control
 * sequence that no text view shows. A script with its own EXIT trap, or one that execs another program, prints nothing.
 */
export const BASH_STATUSES =
  String.raw`# Statuses of Holdfast for bash. The user's own BASH_ENV is put back, and read after this.
trap '__s=("\${PIPESTATUS[@]}"); [ \${#__s[@]} -gt 1 ] && printf "\033]7770;pipeline=%s\007" "\${__s[*]}"' EXIT
if [[ -v HOLDFAST_BASH_ENV ]]; then
  BASH_ENV=$HOLDFAST_BASH_ENV
  unset HOLDFAST_BASH_ENV
  eval "__holdfast_env=\"$BASH_ENV\""
  if [[ -r $__holdfast_env ]]; then . "$__holdfast_env"; fi
  unset __holdfast_env
else
  unset BASH_ENV
fi
`.replaceAll('\\${', '${');

export const SH = String.raw`# Marks of Holdfast for sh. Read as $ENV; the user's own is read first.
if [ -n "\${HOLDFAST_ENV+set}" ]; then
  ENV=$HOLDFAST_ENV
  unset HOLDFAST_ENV
  if [ -r "$ENV" ]; then . "$ENV"; fi
else
  unset ENV
fi
if [ -n "\${BASH_VERSION-}" ]; then
  __holdfast_posix=1
  . "$HOLDFAST_BASH"
elif [ -n "\${HOLDFAST_MARKS-}" ]; then
  PS1="$(printf '\033]133;D;%s;$?;$PWD\007' "$HOLDFAST_MARKS")\${PS1-$ }$(printf '\033]133;B;%s\007' "$HOLDFAST_MARKS")"
  PS2="\${PS2-> }$(printf '\033]133;P;%s\007' "$HOLDFAST_MARKS")"
  unset HOLDFAST_MARKS HOLDFAST_BASH
fi
`.replaceAll('\\${', '${');

/** In its own folder, which is ZDOTDIR only until this has been read: zsh then reads the user's other files itself. */
export const ZSH = String.raw`# Marks of Holdfast for zsh.
if [[ -n "\${HOLDFAST_ZDOTDIR+set}" ]]; then
  export ZDOTDIR=$HOLDFAST_ZDOTDIR
  unset HOLDFAST_ZDOTDIR
else
  unset ZDOTDIR
fi
typeset -g __holdfast_nonce=$HOLDFAST_MARKS
unset HOLDFAST_MARKS
if [[ -r "\${ZDOTDIR-$HOME}/.zshenv" ]]; then
  source "\${ZDOTDIR-$HOME}/.zshenv"
fi
if [[ -o interactive && -n $__holdfast_nonce ]]; then
  __holdfast_precmd() {
    local __holdfast_status=$?
    builtin printf '\033]133;D;%s;%s;%s\a' "$__holdfast_nonce" "$__holdfast_status" "\${PWD//[[:cntrl:]]/?}"
    return $__holdfast_status
  }
  __holdfast_prompt() {
    local __holdfast_status=$? b=$'%{\033]133;B;'$__holdfast_nonce$';%?\a%}' p=$'%{\033]133;P;'$__holdfast_nonce$'\a%}'
    [[ $PS1 == *"$b"* ]] || PS1+=$b
    [[ $PS2 == *"$p"* ]] || PS2+=$p
    # Behind a command zsh first makes sure that the prompt gets a line of its own (PROMPT_SP), and only then comes to us.
    local e=$'%{\033]133;E;'$__holdfast_nonce$'\a%}'
    [[ \${PROMPT_EOL_MARK-} == *"$e"* ]] || typeset -g +x PROMPT_EOL_MARK=$e\${PROMPT_EOL_MARK-%B%S%#%s%b}
    # First and last again, whatever came between.
    precmd_functions=(__holdfast_precmd \${\${precmd_functions:#__holdfast_precmd}:#__holdfast_prompt} __holdfast_prompt)
    return $__holdfast_status
  }
  # A program types here: a "!" in its commands is a "!".
  __holdfast_first() {
    unsetopt bang_hist
    precmd_functions=(\${precmd_functions:#__holdfast_first})
  }
  __holdfast_preexec() {
    builtin printf '\033]133;C;%s\a' "$__holdfast_nonce"
  }
  typeset -ga precmd_functions preexec_functions
  precmd_functions=(__holdfast_precmd $precmd_functions __holdfast_first __holdfast_prompt)
  preexec_functions+=(__holdfast_preexec)
fi
`.replaceAll('\\${', '${');

export const FISH = String.raw`# Marks of Holdfast for fish. Read behind the user's configuration.
if set -q HOLDFAST_MARKS
    set -g __holdfast_nonce $HOLDFAST_MARKS
    set -e HOLDFAST_MARKS
    function __holdfast_begin --on-event fish_preexec
        printf '\033]133;C;%s;early\a' $__holdfast_nonce
    end
    # Between this and the prompt fish makes sure that the prompt gets a line of its own.
    function __holdfast_over --on-event fish_postexec
        printf '\033]133;E;%s\a' $__holdfast_nonce
    end
    function __holdfast_end --on-event fish_prompt
        set -l before $status
        printf '\033]133;D;%s;%s;%s\a' $__holdfast_nonce $before (string replace -ra '[[:cntrl:]]' '?' -- $PWD)
        __holdfast_wrap
    end
    # Around the user's prompt, and around another one when that is made later.
    function __holdfast_wrap
        if functions -q fish_prompt
            if functions fish_prompt | string match -q '*__holdfast_user_prompt*'
                return
            end
            functions -e __holdfast_user_prompt
            functions -c fish_prompt __holdfast_user_prompt
        else
            function __holdfast_user_prompt
                echo -n '> '
            end
        end
        function fish_prompt
            __holdfast_user_prompt
            printf '\033]133;B;%s\a' $__holdfast_nonce
        end
    end
    __holdfast_wrap
end
`;
