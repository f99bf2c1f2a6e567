"""Prepares the server of moto: a bucket, a user with all rights, one that may only put, and credentials with a session token. Then the
server begins to check signatures and rights. Prints JSON."""

import json
import sys
import urllib.request
from importlib.metadata import version

import boto3

endpoint, bucket = sys.argv[1:]
client = lambda service: boto3.client(
    service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="any", aws_secret_access_key="any"
)
iam, sts = client("iam"), client("sts")


def policy_of(*actions):
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]})


def create_user(name, *actions):
    iam.create_user(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="rights", PolicyDocument=policy_of(*actions))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return {"accessKeyId": key["AccessKeyId"], "secretAccessKey": key["SecretAccessKey"]}


client("s3").create_bucket(Bucket=bucket)
full, put_only = create_user("full", "s3:*"), create_user("put", "s3:PutObject")
trust = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]})
role = iam.create_role(RoleName="exports", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
iam.put_role_policy(RoleName="exports", PolicyName="rights", PolicyDocument=policy_of("s3:*"))
given = sts.assume_role(RoleArn=role, RoleSessionName="exports")["Credentials"]
session = {"accessKeyId": given["AccessKeyId"], "secretAccessKey": given["SecretAccessKey"], "sessionToken": given["SessionToken"]}
request = urllib.request.Request(f"{endpoint}/moto-api/reset-auth", data=b"0", method="POST", headers={"Content-Type": "text/plain"})
urllib.request.urlopen(request).read()
print(json.dumps({"name": f"moto {version('moto')}", "full": full, "putOnly": put_only, "session": session}))
