package diagnose

import (
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/phrase"
)

var (
	// reportsWrite is how programs report that they have written a file, reportsRead that they have read one, and resultFile such a file that looks
	// like a result: a model, a checkpoint, an array or a table.
	reportsWrite = regexp.MustCompile(`(?i)\b(?:saved?|saving|wrote|written|writing|stored|dumped|exported|checkpoint(?:ed|ing))\b`)
	reportsRead  = regexp.MustCompile(`(?i)(?:^|[^\w/.-])(?:re)?(?:load|read|restor|resum|import|open|found|using|from)\w*`)
	resultFile   = regexp.MustCompile(`(?:^|[\s"'(=:])(/[\w.+@%=-]+(?:/[\w.+@%=-]+)*(?:\.(?:pt|pth|ckpt|safetensors|onnx|h5|hdf5|npy|npz|pkl|joblib|parquet|csv|model|bin|keras|vtu|vtk)|/saved_model|/checkpoint[-_]?\d*))(?:$|[\s"'),;:.])`)
	// relativeResult is such a file in the working directory, which images set.
	relativeResult = regexp.MustCompile(`(?:^|[\s"'(=])((?:\.{1,2}/)*[\w@%+-][\w.+@%-]*(?:/[\w.+@%-]+)*\.(?:pt|pth|ckpt|safetensors|onnx|h5|hdf5|npy|npz|pkl|joblib|parquet|csv|bin|keras|vtu|vtk))(?:$|[\s"'),;:.])`)
	// beforeRelative is how a line goes on to such a file: another one in it may be something else.
	beforeRelative = regexp.MustCompile(`(?i)\b(?:to|as|in|saved?|saving|wrote|written|writing|stored|dumped|exported|checkpoint(?:ed|ing))(?: (?:the|model|checkpoint|weights|results?|table|file|array|data))*:? ?['"(=]?$`)
	// notWritten is in lines about files that are no longer there, or are written elsewhere, and ownFile in those about files that programs write for
	// themselves.
	notWritten = regexp.MustCompile(`(?i)\b(?:removed?|removing|deleted?|deleting|not found|missing|pushed|pushing|hdfs|bucket|s3fs|minio)\b`)
	ownFile    = regexp.MustCompile(`(?i)cache|te?mp(?:[\W_]|$)|temporary`)
	// notResult are files that programs write for themselves.
	notResult = regexp.MustCompile(`/(?:\.?cache|__pycache__|ompi[.-]|torch_extensions|matplotlib)|^/(?:proc|sys|dev/null)`)
	// copiesResult is what copies results out of a pod: object stores, experiment trackers, and copies to other folders or machines.
	copiesResult = regexp.MustCompile(`(?i)\b(?:s3|gs|hdfs|wasbs?|abfss?)://|\bupload|\baws s3\b|\bgsutil\b|\brclone\b|\bmlflow\b|\bscp\b|\brsync\b|\b(?:cp|mv)\s`)
)

// mostResults is how many files a finding names.
const mostResults = 3

// resultsNotKept reports files that a job which succeeded has reported to write where nothing keeps them when its pods are deleted: on no volume, or
// on one that is deleted with the pod. What else it wrote is unknown.
func resultsNotKept(p *input) []Finding {
	launcher := p.Launcher()
	if launcher == nil || copiesResult.MatchString(p.LauncherCommand()) || slices.ContainsFunc(launcher.Log.Lines, copiesResult.MatchString) {
		return nil
	}
	var files, evidence []string
	figures := map[string]string{}
	pods := []facts.Pod{*launcher}
	for _, line := range launcher.Log.Lines {
		file, rank := writtenResult(line)
		role := p.roleOfRank(rank)
		if file == "" || slices.Contains(files, file) || isKept(p.Template(role), file) {
			continue
		}
		if files = append(files, file); len(files) == 1 {
			figures["programTemplate"], figures["rank"] = p.field(role), rank
			if path.IsAbs(file) {
				figures["folder"] = path.Dir(file)
			}
			if host := p.HostOfText(rank); host != nil {
				pods = []facts.Pod{*host}
			}
		}
		if len(files) <= mostResults {
			evidence = append(evidence, facts.LogLine(*launcher, line))
		}
	}
	if len(files) == 0 {
		return nil
	}
	figures["file"] = strings.Join(files[:min(len(files), mostResults)], ", ")
	if more := len(files) - mostResults; more > 0 {
		figures["file"] += " and " + phrase.Count(int32(more), "more file")
	}
	return []Finding{p.find(codes.ResultsNotKept, pods, figures, evidence...)}
}

// writtenResult returns the result that a line reports to have been written, and the rank that printed it: without a tag, usually the first one. file
// is "" if it reports none.
func writtenResult(line string) (file, rank string) {
	rank = "0"
	if tag := loglines.RankTag.FindStringSubmatch(line); tag != nil {
		rank = tag[1]
	}
	at := resultFile.FindStringSubmatchIndex(line)
	if at == nil {
		at = relativeResult.FindStringSubmatchIndex(line)
		if at != nil && (ownFile.MatchString(line) || !beforeRelative.MatchString(line[:at[2]])) {
			return "", rank
		}
	}
	if at == nil {
		return "", rank
	}
	before, file, after := line[:at[2]], line[at[2]:at[3]], line[at[3]:]
	if !reportsWrite.MatchString(before+" "+after) || notWritten.MatchString(line) || reportsRead.MatchString(before) || notResult.MatchString(file) {
		return "", rank
	}
	return file, rank
}

// isKept reports whether a file is on a volume that stays when the pod is deleted. What a program writes to a folder that the image or a path of
// the node gives is not judged. A relative path is in a folder that is unknown, and may be on any of the volumes.
func isKept(spec corev1.PodSpec, file string) bool {
	if len(spec.Containers) == 0 {
		return true
	}
	if path.IsAbs(file) {
		name := facts.VolumeOf(spec, file)
		return name != "" && !isDeletedWithPod(spec, name)
	}
	return slices.ContainsFunc(spec.Containers[0].VolumeMounts, func(mount corev1.VolumeMount) bool { return !isDeletedWithPod(spec, mount.Name) })
}

// isDeletedWithPod reports whether what a program writes to a volume is deleted with the pod.
func isDeletedWithPod(spec corev1.PodSpec, name string) bool {
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == name && (v.EmptyDir != nil || v.Ephemeral != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil || v.Image != nil)
	})
}
