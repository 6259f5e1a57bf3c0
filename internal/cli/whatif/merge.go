package whatif

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/files"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// indexVariable is the environment variable with the index of a pod of an Indexed Job.
const indexVariable = "JOB_COMPLETION_INDEX"

// maxResult is the largest size of the result of a shard, in bytes.
const maxResult = 256 << 20

// parseShard parses --shard: I/N, or N with the index of an Indexed Job.
func parseShard(text string) (result.Shard, error) {
	if text == "" {
		return result.Shard{}, nil
	}
	index, count, found := strings.Cut(text, "/")
	if !found {
		index, count = os.Getenv(indexVariable), text
	}
	var s result.Shard
	var err error
	if s.Index, err = strconv.Atoi(index); err == nil {
		s.Count, err = strconv.Atoi(count)
	}
	if err != nil || s.Index < 0 || s.Index >= s.Count {
		return s, fmt.Errorf(
			"--shard: invalid value %q: must be I/N with I from 0 to N-1, or N with I in $%s",
			index+"/"+count,
			indexVariable,
		)
	}
	return s, nil
}

// NewMergeCommand returns the command plimsoll merge.
func NewMergeCommand() *cobra.Command {
	var o resultOptions
	cmd := &cobra.Command{
		Use:   "merge FILE...",
		Short: "Merge the results of the shards of a comparison",
		Long: `Merge the results of plimsoll compare --shard, of all shards, and show the comparison as
if it had been run at once.

A file has the output of one shard with -o json. Lines before it, such as warnings in the
log of a pod, are ignored.`,
		Example: `  # Run a comparison of 8 seeds on two machines, and merge the results.
  plimsoll compare --profile default --profile limits --generate nodes=50,pods=1500,fill=0.9,best-effort=0.1 \
    --usage bursts:mean=0.7 --seeds 8 --shard 0/2 -o json > 0.json
  plimsoll compare --profile default --profile limits --generate nodes=50,pods=1500,fill=0.9,best-effort=0.1 \
    --usage bursts:mean=0.7 --seeds 8 --shard 1/2 -o json > 1.json
  plimsoll merge 0.json 1.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no input: files with the results of all shards are required")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(result.WithSlack); err != nil {
				return err
			}
			shards := make([]*result.Result, len(args))
			for i, name := range args {
				var err error
				if shards[i], err = readResult(name); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if shards[i].Shard == nil {
					return fmt.Errorf("%s: found the result of all seeds: must be that of a shard (--shard)", name)
				}
			}
			merged, err := result.Merge(shards)
			if err != nil {
				return err
			}
			return o.finish(cmd.OutOrStdout(), merged)
		},
	}
	o.addFlags(cmd)
	return cmd
}

// readResult reads the document in a file, after lines that are not part of it.
func readResult(name string) (*result.Result, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in := bufio.NewReader(files.Text(io.LimitReader(file, maxResult)))
	if err := skipToObject(in); err != nil {
		return nil, err
	}
	var r result.Result
	err = json.NewDecoder(in).Decode(&r)
	switch _, isOfType := errors.AsType[*json.UnmarshalTypeError](err); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("is cut off: run this shard again")
	case r.Kind == "" || err != nil && !isOfType:
		return nil, errors.New("found no result: must be " + shardOutput)
	case r.Kind != result.Kind || r.APIVersion != result.APIVersion:
		return nil, resources.WrongKind(metav1.TypeMeta{Kind: r.Kind, APIVersion: r.APIVersion}, shardOutput)
	case err != nil:
		return nil, errors.New("found the result of another version: must be " + shardOutput + " of this version")
	}
	return &r, nil
}

// shardOutput is what plimsoll merge reads.
const shardOutput = "the output of plimsoll compare --shard with -o json"

// skipToObject skips the lines before the one that begins with an object.
func skipToObject(in *bufio.Reader) error {
	for {
		start, err := in.Peek(1)
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("found no result: must be " + shardOutput)
		case err != nil: // such as a directory
			return err
		case start[0] == '{':
			return nil
		}
		if _, err := in.ReadString('\n'); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
}
