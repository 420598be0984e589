import { allCommands, type CompletedCommand, type Value } from './command-tree.ts';

export function zshScript(root: CompletedCommand): string {
  const commands = allCommands(root);
  return `#compdef redrive
# zsh completion for redrive, written by \`redrive completion zsh\`

# Whether the words are a command.
_redrive_is_command() {
  case "$1" in
    ${commands.map(({ path }) => `'${path}'`).join(' | \\\n    ')}) return 0 ;;
  esac
  return 1
}

# What follows a command: its subcommands or the values of its next argument.
_redrive_next() {
  local -a found
  case "$1:$2" in
${commands.flatMap(nextCases).join('\n')}
  esac
}

_redrive_options() {
  local -a found
  case "$1" in
${commands.map(optionCase).join('\n')}
  esac
  _describe -o 'option' found
}

# Completes the value of an option; with a second argument only says whether it takes one.
_redrive_values() {
  case "$1" in
${commands.flatMap(valueCases).join('\n')}
    *) return 1 ;;
  esac
  return 0
}

${walk}`;
}

/** Finds the command on the line, and completes the word at the cursor. */
const walk = `_redrive() {
  local cur="$words[CURRENT]" cmd='redrive' option='' word
  local -i given=0 i
  for ((i = 2; i < CURRENT; i++)); do
    word="$words[i]"
    if [[ -n $option ]]; then
      option=''
    elif [[ $word == --*=* ]]; then
      continue
    elif [[ $word == -* ]]; then
      if _redrive_values "$cmd $word" ask; then option="$word"; fi
    elif _redrive_is_command "$cmd $word"; then
      cmd="$cmd $word"
    elif [[ "$cmd $word" != 'redrive help' ]]; then
      given+=1
    fi
  done
  if [[ -n $option ]]; then
    _redrive_values "$cmd $option"
  elif [[ $cur == --*=* ]]; then
    compset -P '*='
    _redrive_values "$cmd \${cur%%=*}"
  elif [[ $cur == -* ]]; then
    _redrive_options "$cmd"
  else
    _redrive_next "$cmd" "$given"
  fi
}

if [[ \${zsh_eval_context[-1]} == loadautofunc ]]; then
  _redrive "$@"
else
  compdef _redrive redrive
fi
`;

function nextCases({ path, children, args }: CompletedCommand): readonly string[] {
  if (children.length > 0) {
    const found = children.map(({ name, text }) => described(name, text)).join(' ');
    return [`    '${path}:0') found=(${found}); _describe 'command' found ;;`];
  }
  return args.flatMap((value, i) =>
    value.kind === 'text' ? [] : [`    '${path}:${i}') ${completing(value)} ;;`],
  );
}

function optionCase({ path, options }: CompletedCommand): string {
  const found = options.flatMap(({ names, text }) => names.map((name) => described(name, text))).join(' ');
  return `    '${path}') found=(${found}) ;;`;
}

function valueCases({ path, options }: CompletedCommand): readonly string[] {
  return options.flatMap(({ names, value }) => {
    if (value === null) return [];
    const patterns = names.map((name) => `'${path} ${name}'`).join(' | ');
    return [`    ${patterns}) ${value.kind === 'text' ? ':' : `[[ -n $2 ]] || ${completing(value)}`} ;;`];
  });
}

function completing(value: Value): string {
  if (value.kind === 'words') return `compadd -- ${value.words.join(' ')}`;
  return value.kind === 'folder' ? '_files -/' : '_files';
}

/** `'list:list messages'`; a colon in the name would end it. */
function described(name: string, text: string): string {
  return `'${`${name.replaceAll(':', '\\:')}:${text}`.replaceAll("'", "'\\''")}'`;
}
