# Clients for Perl: `script.pl CLIENT`. Three GETs and one POST.
use strict;
use warnings;

my $api = 'https://api.test';
my $body = 'x' x 1000;

sub try_all {
    my ($get, $post) = @_;
    for (1 .. 3) { die "method\n" unless $get->("$api/echo") =~ /"method":"GET"/ }
    die "body\n" unless $post->("$api/echo", $body) =~ /"bytes":1000/;
}

if ($ARGV[0] eq 'tiny') {
    require HTTP::Tiny;
    my $http = HTTP::Tiny->new(verify_SSL => 1);
    my $read = sub { my ($r) = @_; die "$r->{status} $r->{content}\n" unless $r->{success}; $r->{content} };
    try_all(
        sub { $read->($http->get($_[0])) },
        sub { $read->($http->post($_[0], { content => $_[1], headers => { 'content-type' => 'text/plain' } })) },
    );
} else {
    require LWP::UserAgent;
    my $agent = LWP::UserAgent->new;
    my $read = sub { my ($r) = @_; die $r->status_line . "\n" unless $r->is_success; $r->content };
    try_all(
        sub { $read->($agent->get($_[0])) },
        sub { $read->($agent->post($_[0], 'Content-Type' => 'text/plain', Content => $_[1])) },
    );
}
