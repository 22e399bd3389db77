// Command cluster runs a real Kubernetes on this machine: etcd, the control
// plane, DNS, and nodes of containerd and kubelet. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/hack/cluster/addon"
	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/cluster"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/node"
	"opendatahub.io/mpijob/hack/cluster/policy"
	"opendatahub.io/mpijob/hack/cluster/process"
	"opendatahub.io/mpijob/hack/cluster/progress"
)

// launch is the name of the hidden command that becomes a component.
const launch = "launch"

// errNotUp makes "status" end with a code that is not 0 after it has said
// everything.
var errNotUp = errors.New("not all is up")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		if !errors.Is(err, errNotUp) {
			fmt.Fprintln(os.Stderr, "error:", err)
		}
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var state string
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "A real Kubernetes on one machine",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&state, "state", "", "state folder (default: .cluster at the root of the clone)")
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(os.Stdout) // what cmd.Print writes to would else be standard error
	root.AddCommand(
		upCommand(&state), downCommand(&state), statusCommand(&state), loadCommand(&state),
		binariesCommand(), mirrorCommand(), kubeconfigCommand(&state), stopNodeCommand(&state), startNodeCommand(&state),
		apiServerCommand(&state, "stop-apiserver", "Stop the API server alone; what runs goes on", (*cluster.Cluster).StopAPIServer),
		apiServerCommand(&state, "start-apiserver", "Start the API server that was stopped", (*cluster.Cluster).StartAPIServer),
		&cobra.Command{
			Use: launch, Hidden: true, Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return process.Launch() },
		},
	)
	root.AddCommand(&cobra.Command{
		Use: cluster.PolicyAgentCommand + " KUBECONFIG", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return policy.Run(cmd.Context(), args[0]) },
	})
	return root
}

// open finds the cluster of the clone that the working directory is in. A
// reporter, when wanted, must be closed.
func open(state string, report *progress.Reporter) (*cluster.Cluster, error) {
	repository, err := layout.FindRepository(".")
	if err != nil && state == "" {
		return nil, err
	}
	if state == "" {
		state = filepath.Join(repository, ".cluster")
	}
	state, err = filepath.Abs(state)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	// Several work trees may share one cluster by a link to its state.
	if target, err := filepath.EvalSymlinks(state); err == nil {
		state = target
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("own path: %w", err)
	}
	l := layout.Layout{State: state}
	return &cluster.Cluster{
		Layout: l, Repository: repository, Report: report,
		Processes: process.Table{Dir: l.Run(), Launcher: []string{self, launch}},
	}, nil
}

// reported runs a command that reports its progress on standard error.
func reported(state string, work func(*cluster.Cluster) error) error {
	report := progress.New(os.Stderr)
	defer report.Close()
	c, err := open(state, report)
	if err != nil {
		return err
	}
	return work(c)
}

func upCommand(state *string) *cobra.Command {
	var options cluster.UpOptions
	var texts struct{ gates, runtimeConfig, with string }
	command := &cobra.Command{
		Use: "up", Short: "Start the cluster, or what is missing of it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cmd.Flags().Changed("nodes") && options.Nodes < 1 {
				return fmt.Errorf("--nodes %d: a cluster has at least 1", options.Nodes)
			}
			if cmd.Flags().Changed("kubernetes") {
				if _, err := layout.Kubernetes(options.Kubernetes); err != nil {
					return fmt.Errorf("--kubernetes: %w", err)
				}
			}
			if policy := options.CPUManager; policy != "" && policy != node.CPUManagerNone && policy != node.CPUManagerStatic {
				return fmt.Errorf("--cpu-manager %s: the policies are %s and %s", policy, node.CPUManagerNone, node.CPUManagerStatic)
			}
			// What is not given stays as it is, which an empty text does not say.
			given := cmd.Flags().Changed
			options.FeatureGates, err = parseIf(given("feature-gates"), texts.gates, parseGates)
			if err != nil {
				return err
			}
			options.RuntimeConfig, err = parseIf(given("runtime-config"), texts.runtimeConfig, parseRuntimeConfig)
			if err != nil {
				return err
			}
			options.With, err = parseIf(given("with"), texts.with, addon.Parse)
			if err != nil {
				return fmt.Errorf("--with: %w", err)
			}
			return reported(*state, func(c *cluster.Cluster) error {
				if err := c.Up(cmd.Context(), options); err != nil {
					return err
				}
				c.Report.Say("up in %s; use it with: export KUBECONFIG=%s", progress.Elapsed(c.Report.Elapsed()), c.Layout.Kubeconfig())
				return nil
			})
		},
	}
	flags := command.Flags()
	flags.IntVar(&options.Nodes, "nodes", 0, "number of nodes (default: as it is, 2 for a new cluster)")
	flags.StringVar(&options.Kubernetes, "kubernetes", "", "version of Kubernetes: "+strings.Join(layout.KubernetesNames(), ", ")+" (default: as it is, "+layout.Newest()+" for a new cluster)")
	flags.StringVar(&texts.gates, "feature-gates", "", "feature gates of Kubernetes, such as GenericWorkload=true; \"\" for none (default: as it is)")
	flags.StringVar(&texts.runtimeConfig, "runtime-config", "", "API versions to serve, such as scheduling.k8s.io/v1beta1=true; \"\" for none (default: as it is)")
	flags.StringVar(&options.CPUManager, "cpu-manager", "", "policy of the CPU manager of the last node, static or none (default: as it is, none for a new cluster)")
	flags.StringVar(&texts.with, "with", "", "controllers to install: "+addon.Usage()+"; \""+addon.None+"\" removes them (default: as it is)")
	return command
}

// parseIf returns what parse makes of text, or nil.
func parseIf[V any](given bool, text string, parse func(string) (map[string]V, error)) (map[string]V, error) {
	if !given {
		return nil, nil
	}
	return parse(text)
}

func parseRuntimeConfig(text string) (map[string]string, error) {
	return parsePairs("runtime-config", text)
}

// parsePairs reads "name=value,name=value"; an empty text has no pairs.
func parsePairs(flag, text string) (map[string]string, error) {
	pairs := map[string]string{}
	if text == "" {
		return pairs, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("--%s: %q is not of the form NAME=VALUE", flag, pair)
		}
		pairs[name] = value
	}
	return pairs, nil
}

func parseGates(text string) (map[string]bool, error) {
	pairs, err := parsePairs("feature-gates", text)
	if err != nil {
		return nil, err
	}
	gates := map[string]bool{}
	for name, value := range pairs {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("--feature-gates: %s=%s: the value must be true or false", name, value)
		}
		gates[name] = on
	}
	return gates, nil
}

func downCommand(state *string) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Stop the cluster and remove all of it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reported(*state, func(c *cluster.Cluster) error {
				found, err := c.Down(cmd.Context())
				if err != nil {
					return err
				}
				if found {
					c.Report.Say("down in %s", progress.Elapsed(c.Report.Elapsed()))
				} else {
					c.Report.Say("nothing is up in %s", c.Layout.State)
				}
				return nil
			})
		},
	}
}

func statusCommand(state *string) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say what of the cluster is up; exit code 1 if not all is", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(*state, nil)
			if err != nil {
				return err
			}
			status, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			cmd.Print(status.Text(c.Layout))
			if !status.Up() {
				return errNotUp
			}
			return nil
		},
	}
}

func loadCommand(state *string) *cobra.Command {
	return &cobra.Command{
		Use: "load IMAGE.tar...", Short: "Import image archives into every node", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, archives []string) error {
			return reported(*state, func(c *cluster.Cluster) error { return c.Load(cmd.Context(), archives) })
		},
	}
}

func binariesCommand() *cobra.Command {
	var kubernetes, with string
	var apiServer bool
	command := &cobra.Command{
		Use: "binaries", Args: cobra.NoArgs,
		Short: "Build etcd, kube-apiserver, kubectl and the others if need be; print their folder",
		RunE: func(cmd *cobra.Command, _ []string) error {
			version, err := layout.Kubernetes(kubernetes)
			if err != nil {
				return fmt.Errorf("--kubernetes: %w", err)
			}
			addOns, err := addon.Parse(with)
			if err != nil {
				return fmt.Errorf("--with: %w", err)
			}
			return reported("", func(c *cluster.Cluster) error {
				ensure := binaries.Ensure
				if apiServer {
					ensure = binaries.EnsureAPIServer
				}
				set, err := ensure(cmd.Context(), c.Repository, version, c.Report)
				if err != nil {
					return err
				}
				if err := addon.PrepareAll(cmd.Context(), addOns, c.Repository, set, c.Report); err != nil {
					return err
				}
				cmd.Println(set.Dir)
				return nil
			})
		},
	}
	command.Flags().StringVar(&kubernetes, "kubernetes", layout.Newest(), "version of Kubernetes: "+strings.Join(layout.KubernetesNames(), ", "))
	command.Flags().StringVar(&with, "with", addon.None, "controllers to build, too: "+addon.Usage())
	command.Flags().BoolVar(&apiServer, "api-server", false, "only etcd, kube-apiserver and kubectl, for tests without nodes")
	return command
}

func mirrorCommand() *cobra.Command {
	var update bool
	command := &cobra.Command{
		Use: "mirror FOLDER", Short: "Write all programs to a folder that others can fetch them from (" + binaries.EnvMirror + ")", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reported("", func(c *cluster.Cluster) error {
				builder, err := binaries.NewBuilder(cmd.Context(), c.Repository, c.Report)
				if err != nil {
					return err
				}
				sums, err := builder.WriteMirror(cmd.Context(), addon.Newest(), args[0])
				if err != nil || !update {
					return err
				}
				file := filepath.Join(c.Repository, "hack", "cluster", "build", binaries.SumsFile)
				if err := os.WriteFile(file, []byte(sums), 0o644); err != nil {
					return fmt.Errorf("write checksums: %w", err)
				}
				return nil
			})
		},
	}
	command.Flags().BoolVar(&update, "update", false, "also write the checksums of this repository, which others compare with")
	return command
}

func kubeconfigCommand(state *string) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the administrator's kubeconfig", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := open(*state, nil)
			if err != nil {
				return err
			}
			cmd.Println(c.Layout.Kubeconfig())
			return nil
		},
	}
}

func stopNodeCommand(state *string) *cobra.Command {
	var kubeletOnly bool
	command := &cobra.Command{
		Use: "stop-node NAME", Short: "Stop a node as a power cut would", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reported(*state, func(c *cluster.Cluster) error { return c.StopNode(cmd.Context(), args[0], kubeletOnly) })
		},
	}
	command.Flags().BoolVar(&kubeletOnly, "kubelet-only", false, "leave the pods running, as if the node's network had failed")
	return command
}

func apiServerCommand(state *string, name, short string, work func(*cluster.Cluster, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reported(*state, func(c *cluster.Cluster) error { return work(c, cmd.Context()) })
		},
	}
}

func startNodeCommand(state *string) *cobra.Command {
	return &cobra.Command{
		Use: "start-node NAME", Short: "Start a node that was stopped", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reported(*state, func(c *cluster.Cluster) error { return c.StartNode(cmd.Context(), strings.TrimSpace(args[0])) })
		},
	}
}
