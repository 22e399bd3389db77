#!/bin/sh
# Runs as root inside the new root file system, with no network: compiles,
# sets up the user and SSH, then removes what only the build needed.
# /build holds pi.c; the files of rootfs/ are in place already.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

mpicc -std=c11 -O2 -Wall -Wextra -Werror -o /usr/local/bin/pi /build/pi.c -lm

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

# Debian's file does not end its last line.
echo >>/etc/openmpi/openmpi-mca-params.conf
# Reading another rank's memory needs ptrace rights, which the default seccomp
# profile takes away; through shared memory it works everywhere.
echo 'btl_vader_single_copy_mechanism = none' >>/etc/openmpi/openmpi-mca-params.conf

# A rank that waits gives its core away: a demonstration often has more ranks
# than the machine has cores, and would otherwise crawl.
echo 'mpi_yield_when_idle = 1' >>/etc/openmpi/openmpi-mca-params.conf

apt-get purge --yes --autoremove \
	-o APT::AutoRemove::RecommendsImportant=false -o APT::AutoRemove::SuggestsImportant=false \
	gcc libc6-dev libopenmpi-dev
rm -rf /var/log/* /var/cache/ldconfig /var/cache/debconf/*-old /var/lib/dpkg/*-old
