# Sourced by ssh and sshd-user: provides the three things that OpenSSH
# requires and a pod lacks: a passwd entry for its UID, a private key that only
# this UID can read, and a host key. Needs no privilege and can run in several
# processes at the same time.
#
# Sets: ssh_dir    where the job's keys are mounted, empty when nowhere
#       ssh_state  a folder of this user, with id_rsa (mode 0600), known_hosts

uid=$(id -u)
home=/home/mpiuser

# OpenShift gives a namespace's pods a UID such as 1000650000 with no passwd
# entry; CRI-O adds one whose shell is nologin. /var/lib/extrausers is read
# before /etc/passwd, and never grants root.
shell=$(getent passwd "$uid" | cut -d: -f7) || shell=
case $shell in
'' | */nologin | */false)
	# 65534: extrausers refuses small group numbers, and OpenSSH without
	# privileges keeps the group it has.
	if [ ! -w /var/lib/extrausers ]; then
		echo "mpi-sample: this image cannot run as UID $uid, which has no login shell in /etc/passwd: set runAsUser: 1000" >&2
		exit 1
	fi
	entry="mpi$uid:x:$uid:65534:MPI job:$home:/bin/sh"
	printf '%s\n' "$entry" >"/var/lib/extrausers/.passwd.$$" &&
		chmod 0644 "/var/lib/extrausers/.passwd.$$" &&
		mv "/var/lib/extrausers/.passwd.$$" /var/lib/extrausers/passwd
	;;
esac

# The mount point is the job's sshAuthMountPath.
ssh_dir=
for candidate in "${MPI_SSH_DIR:-}" "$home/.ssh" /root/.ssh; do
	if [ -n "$candidate" ] && [ -r "$candidate/id_rsa" ]; then
		ssh_dir=$candidate
		break
	fi
done

ssh_state=/tmp/mpi-ssh-$uid
mkdir -m 0700 "$ssh_state" 2>/dev/null || :
if [ ! -d "$ssh_state" ] || [ -L "$ssh_state" ] || [ ! -O "$ssh_state" ]; then
	echo "mpi-sample: $ssh_state belongs to somebody else, or /tmp cannot be written" >&2
	exit 1
fi

# Usage: install_private FILE, with the content on stdin. In one step: another
# ssh may be reading the file.
install_private() {
	(umask 077 && cat >"$ssh_state/.$1.$$" && mv "$ssh_state/.$1.$$" "$ssh_state/$1")
}

if [ -n "$ssh_dir" ]; then
	install_private id_rsa <"$ssh_dir/id_rsa"
	# Workers use the job's key as their host key, so that the launcher can
	# verify them: only the job's pods have it.
	if [ -r "$ssh_dir/id_rsa.pub" ]; then
		printf '* %s\n' "$(cat "$ssh_dir/id_rsa.pub")" | install_private known_hosts
	else
		printf '* %s\n' "$(ssh-keygen -y -f "$ssh_state/id_rsa")" | install_private known_hosts
	fi
fi
