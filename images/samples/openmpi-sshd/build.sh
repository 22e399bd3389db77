#!/bin/sh
# Runs as root inside the new root file system, with the files of rootfs/ in
# place: does what the sample without SSH does, and sets up the user and SSH.
set -eu

/build/mpi/build.sh

# The user that upstream's samples expect. Group 0 may write its home, because
# OpenShift's users are in that group. "*" = no password, yet not locked.
useradd --uid 1000 --user-group --home-dir /home/mpiuser --no-create-home --shell /bin/bash --password '*' mpiuser
install -d -o mpiuser -g root -m 0775 /home/mpiuser
install -d -o mpiuser -g root -m 0775 /home/mpiuser/.ssh
ln -s /usr/local/bin/pi /home/mpiuser/pi
ln -s /usr/local/bin/train.py /home/mpiuser/train.py
ln -s /etc/ssh/sshd_config /home/mpiuser/.sshd_config
# The default sshAuthMountPath is /root/.ssh: let any user look in there.
chmod 0755 /root

# Users that no file knows: see ssh-setup.sh.
sed -i 's/^passwd:.*/passwd:         extrausers files/' /etc/nsswitch.conf
install -d -m 1777 /var/lib/extrausers

# An image must not carry host keys: everyone who has it would have them.
rm -f /etc/ssh/ssh_host_*
dpkg-divert --local --rename --add /usr/sbin/sshd
ln -s /usr/local/bin/sshd-user /usr/sbin/sshd
