package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var images = []Entry{
	{
		Code: InvalidImageName, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Summary:  "{who} cannot start: {imageNow} is not a valid image name.",
		Remedies: []v1alpha1.Remedy{{Text: "Correct the name: registry/folder/name:tag, in lower case.", Action: "{field}.spec.containers[0].image"}},
	},
	{
		Code: ImagePullFailed, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Status:  "{who} cannot start: image {imageNow} cannot be pulled: {message} Check the image name and the pull secret.",
		Summary: "{who} cannot start: image {imageNow} cannot be pulled{why}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first}", Action: "{firstAction}"},
			{Text: "{second}", Action: "{secondAction}"},
		},
	},
}

// ImageWithoutTag are the first remedies of ImagePullFailed for an image whose name has no tag. They use image.
var ImageWithoutTag = []v1alpha1.Remedy{
	{Text: "Name the tag: {image} has none, which stands for :latest. If imagePullPolicy is not set either, nodes ask the registry for it at each start.", Action: "{field}.spec.containers[0].image: {image}:TAG"},
}
