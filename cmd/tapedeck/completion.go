package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completions are the scripts by which a shell asks tapedeck itself what fits.
var completions = map[string]string{
	"bash": `_tapedeck() {
  local words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _tapedeck tapedeck
`,
	"zsh": `#compdef tapedeck
_tapedeck() {
  local -a found
  found=("${(@f)$(${words[1,CURRENT-1]} --generate-bash-completion 2>/dev/null)}")
  compadd -a found
  _files
}
compdef _tapedeck tapedeck
`,
	"fish": `complete -c tapedeck -a '(set -l words (commandline -opc); $words --generate-bash-completion 2>/dev/null)'
`,
}

func (w *world) completionCommand() *cli.Command {
	shells := slices.Sorted(maps.Keys(completions))
	form := strings.Join(shells, ", ")
	return &cli.Command{
		Name:      "completion",
		Usage:     "print the completion script of a shell: " + form,
		ArgsUsage: "SHELL",
		Description: `bash:  source <(tapedeck completion bash)
zsh:   source <(tapedeck completion zsh)
fish:  tapedeck completion fish | source`,
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 1, 1, "a shell: "+form)
			if err != nil {
				return err
			}
			script, ok := completions[args[0]]
			if !ok {
				return usageError("completion: no script for %q; there is one for %s", args[0], form)
			}
			_, err = fmt.Fprint(w.stdout, script)
			return err
		},
	}
}
