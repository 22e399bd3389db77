"""Which names, images, variables, labels and volumes are allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from openshift_ai_sdk.training import _schema
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training.errors import Problem

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
NAMESPACE = re.compile(r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
# The name of an image: [registry[:port]/]path[:tag][@digest].
IMAGE = re.compile(
    r"(?:(?:[a-zA-Z0-9](?:[-a-zA-Z0-9.]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(?::\w[\w.-]{0,127})?(?:@[a-z][a-z0-9+._-]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
VOLUME_NAME = re.compile(r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
VOLUME_NAME_RULE = "use up to 63 lower-case letters, digits and '-', with a letter or digit at both ends"
OBJECT_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
OBJECT_NAME_RULE = "use lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
QUALIFIED_NAME = re.compile(r"(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
QUALIFIED = "use up to 63 letters, digits, '-', '_' and '.', if needed behind a domain and '/'"
LABEL_VALUE = re.compile(r"(?=.{0,63}$)([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")


def is_object_name(value: object) -> bool:
    """Return whether a value is the name of an object, or has a parameter of a template."""
    return isinstance(value, str) and (OBJECT_NAME.fullmatch(value) is not None or has_parameter(value))


def has_parameter(text: str) -> bool:
    """Return whether a text has a parameter of a template, such as ${NAME}."""
    return "${" in text


def whole(value: object) -> int | None:
    """Return a whole number as it is, and None for anything else; True and False are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def problem_of_image(image: object) -> str | None:
    """Return what is wrong with the name of an image; None if nothing is."""
    if isinstance(image, str) and (IMAGE.fullmatch(image) or has_parameter(image)):
        return None
    hint = "'quay.io/me/train:1'"
    if isinstance(image, str):
        bare = re.sub(r"^[a-z]+://", "", image.strip())
        near = next((name for name in (bare, bare.lower()) if name != image and IMAGE.fullmatch(name)), None)
        hint = repr(near) if near else hint
    return f"{image!r} is not allowed; use a name such as {hint}"


def problems_of_texts(
    label: str, pairs: object, is_name: re.Pattern[str], of: str, *, longest: int | None = None, removes: bool = False
) -> list[Problem]:
    """Return what is wrong with texts by name; with ``removes`` None is allowed as a value, too."""
    if not isinstance(pairs, Mapping):
        return [Problem(label, f"{pairs!r} is not allowed; use a mapping, such as {{'NAME': 'value'}}")]
    found = []
    for name, value in pairs.items():
        if not isinstance(name, str) or not (is_name.fullmatch(name) or has_parameter(name)):
            found.append(Problem(label, f"{name!r} is not the name of {of}"))
        elif not isinstance(value, str) and not (removes and value is None):
            text = f"{value!r} is not allowed; use text, such as {str(value)!r}"
            found.append(Problem(f"{label}[{name!r}]", text))
    size = sum(len(str(each).encode()) for pair in pairs.items() for each in pair)
    if longest is not None and size > longest:
        found.append(Problem(label, f"{size} bytes are not allowed; use {longest} or less in all"))
    return found


def problems_of_env(pairs: object, *, removes: bool = False) -> list[Problem]:
    """Return what is wrong with variables."""
    return problems_of_texts(
        "env", pairs, VARIABLE, "a variable; use letters, digits, '_', '-' and '.'", removes=removes
    )


def problems_of_labels(label: str, pairs: object, *, removes: bool = False) -> list[Problem]:
    """Return what is wrong with labels."""
    found = problems_of_texts(label, pairs, QUALIFIED_NAME, f"a label; {QUALIFIED}", removes=removes)
    for name, value in pairs.items() if isinstance(pairs, Mapping) else ():
        if isinstance(value, str) and not LABEL_VALUE.fullmatch(value) and not has_parameter(value):
            allowed = "use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            found.append(Problem(f"{label}[{name!r}]", f"{value!r} is not allowed; {allowed}"))
    return found


def problems_of_volume(field: str, volume: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with a volume: its name, and its source, of which it has one."""
    from openshift_ai_sdk.training._generated.mpijob import Volume

    if has_parameter(str(dict(volume))):
        return []
    found = problems_of_volume_name(field, volume["name"])
    known = {info.alias or name for name, info in Volume.model_fields.items()} - {"name"}
    sources = [str(key) for key in volume if key != "name"]
    for source in sources:
        if source not in known:
            # Those that are used most; there are thirty.
            common = "emptyDir, persistentVolumeClaim, configMap, secret, nfs, csi, ephemeral, projected"
            text = f"is not the source of a volume{nearest(source, known)}; use one such as {common}"
            found.append(Problem(f"{field}.{source}", text))
    if not sources:
        found.append(Problem(field, f"has no source; use { ({**volume, 'emptyDir': {}})!r}"))
    elif len(sources) > 1 and known.issuperset(sources):
        found.append(Problem(field, f"has {len(sources)} sources ({', '.join(sources)}); use one"))
    if not found:
        found += _schema.problems_of(Volume, dict(volume), field)
    return found


def problems_of_mount(field: str, mount: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with the mount of a volume."""
    from openshift_ai_sdk.training._generated.mpijob import VolumeMount

    if has_parameter(str(dict(mount))):
        return []
    found = problems_of_volume_name(field, mount["name"])
    path = mount["mountPath"]
    if not isinstance(path, str) or not path.startswith("/") or ":" in path:
        text = f"{path!r} is not allowed; use a path that begins with '/' and has no ':', such as '/data'"
        found.append(Problem(f"{field}.mountPath", text))
    if not found:
        found += _schema.problems_of(VolumeMount, dict(mount), field)
    return found


def problems_of_volume_name(field: str, name: object) -> list[Problem]:
    """Return what is wrong with the name of a volume."""
    if isinstance(name, str) and VOLUME_NAME.fullmatch(name):
        return []
    return [Problem(f"{field}.name", f"{name!r} is not allowed; {VOLUME_NAME_RULE}")]
