// The placeholders of the rules (`env_vars`): what a client finds in the variables that would otherwise hold a credential.
import type { RuleEntry } from './proxy-config-schema.ts';

export type Placeholders = {
  readonly variables: Readonly<Record<string, string>>;
  /** For the user: which entries are not set, and why. */
  readonly warnings: readonly string[];
};

/** `env_vars` of the enabled rules; the first rule that sets a name wins, as with hosts. `isTaken`: set to something else. */
export function placeholdersOf(
  rules: readonly RuleEntry[],
  isTaken: (name: string) => boolean,
): Placeholders {
  const variables: Record<string, string> = {};
  const warnings: string[] = [];
  for (const [i, rule] of rules.entries()) {
    if (!rule.enabled) continue;
    for (const [name, value] of Object.entries(rule.env_vars)) {
      if (isTaken(name) || CONTROLLING.test(name) || SHELLS_OWN.test(name))
        warnings.push(
          `env_vars.${name} of ${rule.name ?? `rules[${i}]`} is not set: the name does not look like a credential`,
        );
      else if (!Object.hasOwn(variables, name)) variables[name] = value;
    }
  }
  return { variables, warnings };
}

// A tenant writes the rules, and must not control what a shell, a loader or an interpreter runs.
const CONTROLLING: RegExp = new RegExp(
  `^(?:${[
    'PATH|HOME|XDG_.*|SHELL|ENV|IFS|PS[0-4]|PROMPT_COMMAND|BASH_ENV|BASHOPTS|SHELLOPTS|ZDOTDIR',
    'EDITOR|VISUAL|PAGER|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER|SSH_ASKPASS|SUDO_ASKPASS',
    'LD_.*|DYLD_.*|GCONV_PATH|GLIBC_TUNABLES|HOSTALIASES|SSL_CERT_DIR|SSLKEYLOGFILE|SALLYPORT_.*',
    'OPENSSL_(?:CONF|MODULES|ENGINES)|CURL_HOME|(?:SYSTEM_)?WGETRC|NODE_OPTIONS|NODE_PATH|NODE_TLS_REJECT_UNAUTHORIZED',
    '(?:npm|NPM)_(?:config|CONFIG)_(?!_auth|_AUTH).*|PIP_.*|PYTHON[A-Z0-9]*|PERL5[A-Z]*|PERLLIB|RUBY[A-Z]*|LUA_(?:INIT|C?PATH).*',
    'PHPRC|PHP_INI_SCAN_DIR|DOTNET_STARTUP_HOOKS|CLASSPATH|(?:_|JDK_)JAVA_OPTIONS|JAVA_TOOL_OPTIONS',
    'APT_CONFIG|HTTPLIB2_CA_CERTS|PERL_LWP_.*|YARN_(?!NPM_AUTH).*|(?:WSS?_PROXY|wss?_proxy)',
    'GOFLAGS|MAKEFLAGS|CARGO_(?!REGISTR).*|RUSTC(?:_.*)?|RUSTFLAGS|AWS_CONFIG_FILE|KUBECONFIG',
    'GIT_(?:CONFIG.*|SSH|SSH_COMMAND|EXEC_PATH|ASKPASS|EDITOR|SEQUENCE_EDITOR|PAGER|PROXY_COMMAND|EXTERNAL_DIFF)',
    'GIT_(?:TEMPLATE_DIR|DIR|COMMON_DIR|WORK_TREE|SSL_NO_VERIFY|ALLOW_PROTOCOL)|TAR_OPTIONS|RSYNC_RSH',
  ].join('|')})$`,
);

// Special variables of bash and zsh. They evaluate what is assigned to a number of them as arithmetic, in which
// `a[$(command)]` runs the command, whatever the quotes; at an assignment to others a shell ends.
const SHELLS_OWN: RegExp = new RegExp(
  `^(?:${[
    '_|BASH|BASH_.*|BASHPID|COMP_[A-Z]+|COMPREPLY|COPROC|DIRSTACK|EMACS|EPOCH(?:SECONDS|REALTIME)|E?[UG]ID|PPID',
    'EXECIGNORE|FCEDIT|FIGNORE|FUNCNAME|FUNCNEST|GLOBIGNORE|GLOBSORT|GROUPS|HIST(?:CHARS|CMD|CONTROL|FILE|FILESIZE)',
    'HIST(?:IGNORE|SIZE|TIMEFORMAT)|SAVEHIST|HOSTFILE|IGNOREEOF|INPUTRC|LANG|LC_[A-Z]+|LOCPATH|LINENO|LINES|COLUMNS',
    'MAIL|MAILCHECK|MAILPATH|MAPFILE|OLDPWD|PWD|CDPATH|OPT(?:ARG|ERR|IND)|PIPESTATUS|POSIXLY_CORRECT|PROMPT_DIRTRIM',
    'S?RANDOM|READLINE_[A-Z]+|REPLY|SECONDS|SHLVL|TIMEFORMAT|TMOUT|TMPDIR|CHILD_MAX|auto_resume|histchars',
    'ARGC|argv|ERRNO|BAUD|DIRSTACKSIZE|KEYTIMEOUT|KEYBOARD_HACK|LISTMAX|LOGCHECK|PERIOD|REPORT(?:TIME|MEMORY)|STTY',
    'TTY|TTYIDLE|TRY_BLOCK_[A-Z]+|ZSH_[A-Z_]+|ZLE_[A-Z_]+|(?:READ)?NULLCMD|R?PROMPT[234]?|RPS[12]|SPROMPT|WORDCHARS',
    '(?:c|f|man|mail|module_)?path|FPATH|MANPATH|MODULE_PATH|PSVAR|psvar|fignore|prompt|watch|WATCH(?:FMT)?|status',
    '(?:dis_)?(?:g|s)?aliases|(?:dis_)?functions|commands|options|parameters|modules|dirstack|history|nameddirs|pipestatus',
  ].join('|')})$`,
);
