#!/usr/bin/env bash
# Builds the site as a version, next to those that were built before, into FOLDER (dist/versions): versions.sh VERSION.
# mike keeps the versions in a Git repository of their own, FOLDER.git, so that the clone gets no branch.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$1 folder=${FOLDER:-dist/versions}
[[ $version =~ ^[A-Za-z0-9][A-Za-z0-9.-]*$ ]] || { echo "docs: '$version' is not allowed as a version; use a tag such as v0.2.0"; exit 1; }

mkdir -p "$folder"
GIT_DIR=$(realpath "$folder").git
export GIT_DIR
[ -d "$GIT_DIR" ] || git init --quiet --bare "$GIT_DIR"
export GIT_AUTHOR_NAME=docs GIT_AUTHOR_EMAIL=docs@localhost GIT_COMMITTER_NAME=docs GIT_COMMITTER_EMAIL=docs@localhost
git config user.name docs && git config user.email docs@localhost
export PATH=$PWD/hack/site/.venv/bin:$PATH SITE_DIR=${GIT_DIR%.git}.build # mike calls mkdocs
mike deploy --update-aliases --alias-type redirect --allow-empty --message "$version" "$version" latest
mike set-default --allow-empty --message "latest is $version" latest
rm -rf "$folder" "$SITE_DIR" && mkdir "$folder"
git archive gh-pages | tar -x -C "$folder"
echo "docs: $folder has $(git show gh-pages:versions.json | grep -c '"version"') versions; serve it from a web server"
