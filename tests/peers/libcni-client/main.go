// libcni-client is a container runtime reduced to its network calls, on the
// original libcni. Tests run it against Podwire's plugins and cache.
//
// It prints JSON: the answer, or {"code","msg","details"} with exit status 1.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

const usage = `usage: libcni-client COMMAND [OPTIONS]

COMMAND: add, check, del, gc, status, validate, cached-result,
         cached-config, cached-attachments, version`

type words []string

func (w *words) String() string     { return strings.Join(*w, ",") }
func (w *words) Set(s string) error { *w = append(*w, s); return nil }

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	command := os.Args[1]
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	var pluginDirs words
	flags.Var(&pluginDirs, "plugin-dir", "where plugins are; may be repeated")
	confDir := flags.String("conf-dir", "/etc/cni/net.d", "where network configurations are")
	confFile := flags.String("conf-file", "", "one .conflist instead of --conf-dir and --network")
	network := flags.String("network", "", "name of the network in --conf-dir")
	cacheDir := flags.String("cache-dir", "/var/lib/cni", "where results are kept")
	netns := flags.String("netns", "", "path of the network namespace")
	containerID := flags.String("container-id", "", "container id")
	ifname := flags.String("ifname", "eth0", "interface name in the container")
	args := flags.String("args", "", "CNI_ARGS, as K=V;K2=V2")
	capabilities := flags.String("capability-args", "{}", "JSON object of capability arguments")
	valid := flags.String("valid-attachments", "[]", `for gc: JSON list of {"containerID","ifname"}`)
	timeout := flags.Duration("timeout", time.Minute, "deadline of the call")
	_ = flags.Parse(os.Args[2:])

	if command == "version" {
		show(map[string]any{"go": runtime.Version(), "cniVersions": version.All.SupportedVersions()})
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	cni := libcni.NewCNIConfigWithCacheDir(pluginDirs, *cacheDir, nil)

	runtimeConf := &libcni.RuntimeConf{
		ContainerID: *containerID, NetNS: *netns, IfName: *ifname, CacheDir: *cacheDir,
	}
	for _, pair := range strings.FieldsFunc(*args, func(r rune) bool { return r == ';' }) {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			fail(fmt.Errorf("--args: %q isn't K=V", pair))
		}
		runtimeConf.Args = append(runtimeConf.Args, [2]string{key, value})
	}
	try(json.Unmarshal([]byte(*capabilities), &runtimeConf.CapabilityArgs))

	if command == "cached-attachments" {
		attachments, err := cni.GetCachedAttachments(*containerID)
		try(err)
		show(attachments)
		return
	}
	list := load(*confDir, *confFile, *network)
	switch command {
	case "add":
		result, err := cni.AddNetworkList(ctx, list, runtimeConf)
		try(err)
		show(result)
	case "check":
		try(cni.CheckNetworkList(ctx, list, runtimeConf))
		show(struct{}{})
	case "del":
		try(cni.DelNetworkList(ctx, list, runtimeConf))
		show(struct{}{})
	case "gc":
		gc := &libcni.GCArgs{ValidAttachments: []types.GCAttachment{}}
		try(json.Unmarshal([]byte(*valid), &gc.ValidAttachments))
		try(cni.GCNetworkList(ctx, list, gc))
		show(struct{}{})
	case "status":
		try(cni.GetStatusNetworkList(ctx, list))
		show(struct{}{})
	case "validate":
		found, err := cni.ValidateNetworkList(ctx, list)
		try(err)
		show(map[string]any{"capabilities": found})
	case "cached-result":
		result, err := cni.GetNetworkListCachedResult(list, runtimeConf)
		try(err)
		show(result)
	case "cached-config":
		config, cached, err := cni.GetNetworkListCachedConfig(list, runtimeConf)
		try(err)
		show(map[string]any{"config": string(config), "runtimeConf": cached})
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
}

func load(dir, file, name string) *libcni.NetworkConfigList {
	if file != "" {
		list, err := libcni.NetworkConfFromFile(file)
		try(err)
		return list
	}
	list, err := libcni.LoadNetworkConf(dir, name)
	try(err)
	return list
}

func show(answer any) {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(answer); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

func try(err error) {
	if err != nil {
		fail(err)
	}
}

// fail shows an error with the code of the plugin that caused it, 0 if libcni did.
func fail(err error) {
	shown := types.Error{Msg: err.Error()}
	var cause *types.Error
	if errors.As(err, &cause) {
		shown.Code, shown.Details = cause.Code, cause.Details
	}
	show(shown)
	os.Exit(1)
}
